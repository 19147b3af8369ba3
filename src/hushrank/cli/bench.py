"""`hushrank bench`: how fast is the simulator here?"""

from __future__ import annotations

from typing import Annotated

import typer


def bench(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Benchmarks; default: all.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or gpu.")] = "auto",
    engine: Annotated[str, typer.Option(help="numba, xla or auto.")] = "auto",
    list_: Annotated[bool, typer.Option("--list", help="Only show the names.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check equal answers against the plain round, then time the simulator."""
    from hushrank.cli.output import print_json
    from hushrank.machine.bench import BENCHMARKS, find_benchmark, run_benchmark

    chosen = [find_benchmark(name) for name in names or BENCHMARKS]
    if list_:
        for benchmark in chosen:
            typer.echo(f"{benchmark.name:<36} {benchmark.about}")
        return
    rows = []
    for benchmark in chosen:
        typer.echo(f"{benchmark.name}: {benchmark.about}", err=True)
        rows.append(run_benchmark(benchmark, device=device, engine=engine))
        if not json_:
            row = rows[-1]
            typer.echo(
                f"{row['name']:<36} {row['interactions_per_cpu_second']:>12,} per CPU-second "
                f"{row['interactions_per_second']:>12,} per second  "
                f"(ready in {row['compile_s']} s, {row['engine']}, {row['device']})"
            )
    if json_:
        print_json({"benchmarks": rows})
