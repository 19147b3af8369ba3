"""A data set by name or directory, ready for a run: found, read or generated, normalised, divided into folds."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from hushrank.data.cache import FORMAT, cache_key, fetch
from hushrank.data.catalog import CATALOG, explain_getting
from hushrank.data.intents import read_judged
from hushrank.data.layout import ROLES, FoldSource, SplitSource, find_folds
from hushrank.data.letor import side_file
from hushrank.data.normalise import check_method, normalise_queries
from hushrank.data.queries import slice_queries, widen_queries
from hushrank.data.recognise import name_directory
from hushrank.data.shapes import SHAPES, shape_named, split_seed
from hushrank.data.source import digest_file
from hushrank.data.synthetic import GENERATOR, generate_folds, generate_wrapped
from hushrank.types import Dataset, Fold, QuerySet

Progress = Callable[[str], None]  # hears one short sentence per step
_WORTH_KEEPING = 1_000_000  # feature values. Why: a smaller set is generated faster than it is read back


def load_dataset(
    name_or_dir: str | os.PathLike[str],
    *,
    folds: Sequence[int] | None = None,
    normalise: str | None = None,
    keep_document_ids: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Dataset:
    """Load a generated shape, a data set of the catalogue, or a directory of LETOR files.

    `folds`: numbers of the folds wanted, all by default. `normalise`: the catalogue's by default, none for directories
    and shapes. `seed`: of a generated set. Every split has the same features; those that a file lacks are 0.
    """
    name_or_dir = os.fspath(name_or_dir)
    if normalise is not None:
        check_method(normalise)
    if folds is not None and not (len(folds) and len(set(folds)) == len(folds)):
        raise ValueError(
            f"folds are {list(folds)}, must be different numbers, at least one. Leave them out to use all."
        )
    tell = progress or (lambda _: None)
    if name_or_dir.partition(":")[0] in SHAPES:
        return _generate_dataset(name_or_dir, folds=folds, normalise=normalise or "none", seed=seed, tell=tell)
    directory, default = resolve_directory(name_or_dir)
    sources = find_folds(directory, folds)
    return _read_dataset(
        name_or_dir if name_or_dir in CATALOG else name_directory(directory),
        sources,
        method=normalise or default,
        keep_document_ids=keep_document_ids,
        tell=tell,
    )


def resolve_directory(name_or_dir: str) -> tuple[Path, str]:
    """The directory that is meant, and the normalisation that goes with the name."""
    if name_or_dir not in CATALOG and Path(name_or_dir).exists():
        return Path(name_or_dir), "none"
    name = name_or_dir.lower()
    if name not in CATALOG:
        raise FileNotFoundError(_explain_unknown(name_or_dir))
    found = find_public(name)
    if found is not None:
        return found, CATALOG[name].normalise
    root = os.environ.get("HUSHRANK_DATA")
    where = f"{Path(root) / name}" if root else f"./{name}, or set HUSHRANK_DATA and use $HUSHRANK_DATA/{name}"
    raise FileNotFoundError(f"{name} is not here. {explain_getting(name, where=where)}")


def find_public(name: str) -> Path | None:
    """Where a data set of the catalogue is on this machine: in $HUSHRANK_DATA or in the current directory."""
    root = os.environ.get("HUSHRANK_DATA")
    places = [Path(root), Path()] if root else [Path()]
    return next((found for place in places if (found := find_ignoring_case(place, name)) is not None), None)


def check_catalogue_name(name: str) -> None:
    """Refuse a name that the catalogue does not have."""
    if name.lower() not in CATALOG:
        raise ValueError(f"{name!r} is no data set of the catalogue, which has {', '.join(CATALOG)}.")


def find_ignoring_case(place: Path, name: str) -> Path | None:
    if not place.is_dir():
        return None
    return next((path for path in sorted(place.iterdir()) if path.name.lower() == name and path.is_dir()), None)


def _explain_unknown(name: str) -> str:
    known = [*SHAPES, *CATALOG]
    near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Known names: {', '.join(known)}."
    return f"{name!r} is neither a directory nor the name of a data set. {hint}"


def _generate_dataset(name: str, *, folds: Sequence[int] | None, normalise: str, seed: int, tell: Progress) -> Dataset:
    shape, own_seed = shape_named(name), split_seed(name)[1]
    seed = seed if own_seed is None else own_seed
    options = ["synthetic", GENERATOR, shape.identity, seed]
    tell(f"generating {name}, seed {seed}")
    if shape.n_queries * shape.mean_length * shape.n_features < _WORTH_KEEPING:
        whole = generate_wrapped(shape, seed=seed)
    else:
        whole = fetch(cache_key(*options), lambda: generate_wrapped(shape, seed=seed), source=f"{name}, seed {seed}")
    chosen = _choose_folds(generate_folds(whole, shape.n_parts), folds, name)
    normalised = tuple(_normalise_fold(fold, normalise) for fold in chosen)
    return Dataset(name, normalised, normalise, cache_key(*options, normalise, [fold.number for fold in chosen]))


def _choose_folds(folds: tuple[Fold, ...], wanted: Sequence[int] | None, name: str) -> list[Fold]:
    by_number = {fold.number: fold for fold in folds}
    for number in wanted or []:
        if number not in by_number:
            raise ValueError(f"{name} has no fold {number}; it has 1 to {len(folds)}. Name folds that are there.")
    return [by_number[number] for number in wanted or by_number]


def _normalise_fold(fold: Fold, method: str) -> Fold:
    splits = (normalise_queries(getattr(fold, role), method, train=fold.train) for role in ROLES)
    return Fold(fold.number, *splits) if method != "none" else fold


def _read_dataset(
    name: str, sources: list[FoldSource], *, method: str, keep_document_ids: bool, tell: Progress
) -> Dataset:
    reader = _Reader(method, keep_document_ids, tell)
    loaded = [(source, {role: reader.load_split(source, role) for role in ROLES}) for source in sources]
    width = max(split.n_features for _, splits in loaded for split in splits.values())
    folds = tuple(
        Fold(source.number, *(widen_queries(splits[role], width) for role in ROLES)) for source, splits in loaded
    )
    contents = [[s.number, *(reader.identify(s.splits[role]) for role in ROLES)] for s in sources]
    return Dataset(name, folds, method, cache_key("files", FORMAT, method, contents))


class _Reader:
    """Reads splits through the cache, each file once."""

    def __init__(self, method: str, keep_document_ids: bool, tell: Progress) -> None:
        self.method, self.keep_document_ids, self.tell = method, keep_document_ids, tell
        self.digests: dict[Path, str] = {}
        self.loaded: dict[str, QuerySet] = {}

    def load_split(self, fold: FoldSource, role: str) -> QuerySet:
        """One split of a fold, normalised."""
        source, train = fold.splits[role], fold.splits["train"]
        if self.method != "standard":
            return self.load(source, self.method)
        return self.load(source, "standard", train=train)

    def load(self, source: SplitSource, method: str, *, train: SplitSource | None = None) -> QuerySet:
        measured = self.identify(train) if train else None
        key = cache_key("file", self.identify(source), method, self.keep_document_ids, measured)
        if key not in self.loaded:
            spoken = f"{source.path} ({method}{'' if source.part == 'all' else ', ' + source.part})"
            self.loaded[key] = fetch(key, lambda: self.make(source, method, train), source=spoken)
        return self.loaded[key]

    def make(self, source: SplitSource, method: str, train: SplitSource | None) -> QuerySet:
        """Read and normalise what the cache does not have."""
        measured = self.load(train, "none") if train else None
        self.tell(f"reading {source.path} ({source.path.stat().st_size / 1e6:.1f} MB)")
        queries = read_judged(source.path, source.intents, keep_document_ids=self.keep_document_ids)
        if source.part != "all":
            self.tell(f"no validation file: the last fifth of the queries of {source.path.name} is held out for it")
            queries = _take_part(queries, source)
        return normalise_queries(queries, method, train=measured)

    def identify(self, source: SplitSource) -> list[str]:
        """What a split's arrays depend on: the content of its files, and the part of them."""
        side = [side_file(source.path)] if side_file(source.path).is_file() else []
        files = [source.path, *side, *source.intents]
        for path in files:
            if path not in self.digests:
                self.digests[path] = digest_file(path)
        return [source.part, *(self.digests[path] for path in files)]


def _take_part(queries: QuerySet, source: SplitSource) -> QuerySet:
    if queries.n_queries < 2:
        raise ValueError(
            f"{source.path} has one query, at least two are needed to hold one out. Add a validation file."
        )
    cut = queries.n_queries - max(1, queries.n_queries // 5)
    return slice_queries(queries, 0, cut) if source.part == "head" else slice_queries(queries, cut, queries.n_queries)
