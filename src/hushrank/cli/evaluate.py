"""`hushrank evaluate`: a ranker on data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    ranker: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|MODEL", help="A run's directory (each ranker on its own fold) or an exported ranker."
        ),
    ],
    data: Annotated[
        str | None,
        typer.Option(help="Synthetic set (tiny), public set (mq2008) or directory; default: that of the run."),
    ] = None,
    split: Annotated[str, typer.Option(help="train, vali or test.")] = "test",
    normalise: Annotated[
        str | None, typer.Option(help="none, query-minmax or standard; default: the run's or the catalogue's.")
    ] = None,
    trec_run: Annotated[
        Path | None, typer.Option(help="Also write the ranking of one exported ranker as a TREC run file.")
    ] = None,
    fold: Annotated[
        int | None, typer.Option(help="One fold; default: the one it was trained on, all on other data.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure trained rankers: nDCG@10, nDCG@5, MRR, MAP, P@10."""
    from hushrank.cli.output import print_json
    from hushrank.runs.rankers import check_split, evaluate_on, load_for, rank_for_trec

    check_split(split)
    rankers, dataset = load_for(ranker, data=data, normalise=normalise, keep_document_ids=trec_run is not None)
    found = evaluate_on(rankers, dataset, split=split, fold=fold)
    if trec_run is not None:
        rank_for_trec(rankers, dataset, trec_run, split=split, fold=fold)
    if json_:
        print_json(found)
        return
    skipped = f"{found['n_queries_skipped']} without a relevant document skipped"
    typer.echo(f"{found['data']}, {split}: {found['n_queries']} queries, {skipped}")
    for name, metric in found["metrics"].items():
        std = "" if metric["std"] is None else f" ± {metric['std']:.4f}"
        typer.echo(f"  {name:<8} {metric['mean']:.4f}{std}  ({len(metric['values'])} values, {metric['variant']})")
    if trec_run is not None:
        typer.echo(f"TREC run: {trec_run}", err=True)
