"""`hushrank doctor`: is this machine ready?"""

from __future__ import annotations

from typing import Annotated

import typer


def doctor(json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Check versions, device, caches, and that compiled rounds equal the plain ones."""
    from hushrank.cli.output import print_json
    from hushrank.machine.doctor import examine_machine

    findings = []
    for finding in examine_machine():
        findings.append(finding)
        if not json_:
            typer.echo(f"{'ok' if finding.is_well else 'NOT OK':<7} {finding.name:<12} {finding.detail}")
    is_well = all(finding.is_well for finding in findings)
    if json_:
        print_json(
            {
                "is_well": is_well,
                "findings": [{"name": f.name, "is_well": f.is_well, "detail": f.detail} for f in findings],
            }
        )
    raise typer.Exit(0 if is_well else 1)
