"""Public data sets by name: what they hold, how the published runs scaled them, and how to get them.

Each has terms that a person must accept, so none is downloaded: an entry says where it is had and what to keep.
Counts are enforced by `hushrank data check` unless the entry lists them as unverified; then they are only told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One public data set."""

    title: str
    n_queries: int  # in the whole set, each counted once
    n_documents: int
    n_features: int  # the highest index; sparse files may lack the last ones
    n_grades: int
    n_folds: int
    normalise: str  # as in the published runs
    licence: str  # one sentence
    page: str  # where to ask for it
    how_to_get: str  # one sentence: what to take from the page, and what of it to keep
    layout: str  # the files that the loader looks for
    # Five folds: of the parts S1 to S5, which the folds rotate. One fold: of train, vali and test. Empty: not known.
    part_queries: tuple[int, ...] = ()
    part_documents: tuple[int, ...] = ()
    unverified: tuple[str, ...] = ()  # fields for which no source near to the data was found


def split_counts(parts: tuple[int, ...], n_folds: int) -> dict[tuple[int, str], int]:
    """The count of each (fold, split), from those of the parts.

    Fold f trains on S_f, S_(f+1), S_(f+2), validates on S_(f+3) and tests on S_(f+4), counted around.
    """
    if n_folds == 1:
        return {(1, role): count for role, count in zip(("train", "vali", "test"), parts, strict=False)}
    counts: dict[tuple[int, str], int] = {}
    for fold in range(1, n_folds + 1) if parts else ():
        around = parts[fold - 1 :] + parts[: fold - 1]
        counts |= {(fold, "train"): sum(around[:-2]), (fold, "vali"): around[-2], (fold, "test"): around[-1]}
    return counts


_IN_FOLDS = "the directories Fold1 to Fold5 (train.txt, vali.txt and test.txt in each)"
_LETOR_PAGE = "https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval/letor-4-0/"
_MSLR_PAGE = "https://www.microsoft.com/en-us/research/project/mslr/"
_YAHOO_PAGE = "https://huggingface.co/datasets/YahooResearch/Yahoo-Learning-to-Rank-Challenge"
_INTENT_PAGE = "https://github.com/ielab/2022-SIGIR-noniid-foltr"
_ISTELLA_PAGE = "http://quickrank.isti.cnr.it/istella-dataset/"
# Microsoft's and Yahoo's pages ask to accept terms, whose text was not at hand; Istella's README states the licence.
_MICROSOFT = "For research; read and accept the agreement on Microsoft's page."

# Where the numbers come from:
# - MQ2008: counted in the official five folds; the same in [foltr-es, Section 5].
# - MQ2007: [foltr-es, Section 5]. The description of the set (arXiv:1306.2597) says only "about 1700" queries.
# - MSLR-WEB10K: queries of each split in the TensorFlow Datasets catalogue (mslr_web), which counted them; documents in
#   OpenML 45579, which counted them, too. Liu's book on learning to rank says one document more, for both sets.
# - MSLR-WEB30K: queries as for WEB10K. Documents: 3,771,125 in several texts, 3,771,126 in Liu's book; nobody near the
#   data was found to have counted them.
# - Yahoo: queries and documents of each split on Microsoft's LETOR page about the challenge; TensorFlow Datasets
#   (yahoo_ltrc) counted the same queries. The 700 features are those of both sets; set 1 has values up to index 699.
# - Istella-S: the README in the archive, which also says 60 : 20 : 20. For the exact splits no source was found.
# - Intent change: [thesis, Section 4.3.1], which says 200 queries of 4 intents and 512 documents on average; the
#   features are those that the published code reads, which scales them within each query.
CATALOG: Mapping[str, CatalogEntry] = MappingProxyType(
    {
        "mq2007": CatalogEntry(
            title="LETOR 4.0 MQ2007",
            n_queries=1_692,
            n_documents=69_623,
            n_features=46,
            n_grades=3,
            n_folds=5,
            normalise="none",
            licence=_MICROSOFT,
            page=_LETOR_PAGE,
            how_to_get="Take MQ2007.rar (supervised ranking) and unpack it.",
            layout=_IN_FOLDS,
            unverified=("licence",),
        ),
        "mq2008": CatalogEntry(
            title="LETOR 4.0 MQ2008",
            n_queries=784,
            n_documents=15_211,
            n_features=46,
            n_grades=3,
            n_folds=5,
            normalise="none",
            licence=_MICROSOFT,
            page=_LETOR_PAGE,
            how_to_get="Take MQ2008.rar (supervised ranking) and unpack it.",
            layout=_IN_FOLDS,
            part_queries=(157, 157, 157, 157, 156),
            part_documents=(2_933, 3_635, 3_062, 2_707, 2_874),
            unverified=("licence",),
        ),
        "mslr-web10k": CatalogEntry(
            title="MSLR-WEB10K",
            n_queries=10_000,
            n_documents=1_200_192,
            n_features=136,
            n_grades=5,
            n_folds=5,
            normalise="query-minmax",
            licence=_MICROSOFT,
            page=_MSLR_PAGE,
            how_to_get="Take MSLR-WEB10K.zip and unpack it.",
            layout=_IN_FOLDS,
            part_queries=(2_000,) * 5,
            unverified=("licence",),
        ),
        "mslr-web30k": CatalogEntry(
            title="MSLR-WEB30K",
            n_queries=31_531,
            n_documents=3_771_125,
            n_features=136,
            n_grades=5,
            n_folds=5,
            normalise="query-minmax",
            licence=_MICROSOFT,
            page=_MSLR_PAGE,
            how_to_get="Take MSLR-WEB30K.zip and unpack it.",
            layout=_IN_FOLDS,
            part_queries=(6_307, 6_306, 6_306, 6_306, 6_306),
            unverified=("licence", "n_documents"),
        ),
        "yahoo": CatalogEntry(
            title="Yahoo! Learning to Rank Challenge, set 1",
            n_queries=29_921,
            n_documents=709_877,
            n_features=700,
            n_grades=5,
            n_folds=1,
            normalise="query-minmax",
            licence="For research; read and accept the terms on Yahoo's page.",
            page=_YAHOO_PAGE,
            how_to_get="Take C14, unpack dataset.tgz and the ltrc_yahoo archive in it, keep the three files of set1.",
            layout="set1.train.txt, set1.valid.txt and set1.test.txt",
            part_queries=(19_944, 2_994, 6_983),
            part_documents=(473_134, 71_083, 165_660),
            unverified=("licence",),
        ),
        "istella-s": CatalogEntry(
            title="Istella-S LETOR",
            n_queries=33_018,
            n_documents=3_408_630,
            n_features=220,
            n_grades=5,
            n_folds=1,
            normalise="query-minmax",
            licence="For non-commercial use only; read and accept the Istella LETOR licence agreement.",
            page=_ISTELLA_PAGE,
            how_to_get="Take istella-s-letor.tar.gz, unpack it, and keep the three files of its directory sample.",
            layout="train.txt, vali.txt and test.txt",
            part_queries=(19_245, 7_211, 6_562),
            unverified=("part_queries",),
        ),
        "intent-change": CatalogEntry(
            title="Intent change (ClueWeb09, TREC Web Track 2009 to 2012)",
            n_queries=200,
            n_documents=102_400,
            n_features=105,
            n_grades=2,
            n_folds=1,
            normalise="query-minmax",
            licence="For research; its features come from ClueWeb09, whose agreement applies.",
            page=_INTENT_PAGE,
            how_to_get="Take the intent-change collection that the page links to.",
            layout="clueweb09_intent_change.txt and the folder intents (1.txt to 4.txt)",
            unverified=("licence", "n_documents", "n_features", "n_grades"),
        ),
    }
)


def explain_getting(name: str, *, where: str) -> str:
    """One line: where a data set is had, what to keep, and where to put it."""
    entry = CATALOG[name]
    return f"Visit {entry.page} ({entry.licence[:-1]}). {entry.how_to_get} Put {entry.layout} into {where}."
