"""A group of commands of which one is meant when none is named: `hushrank client URL` is `hushrank client run URL`."""

from __future__ import annotations

import typer
from typer.core import TyperGroup

DEFAULT = "run"


class DefaultGroup(TyperGroup):
    """Words that name no command of the group are its default command's."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override] # Why: typer's own
        is_named = bool(args) and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if is_named else [DEFAULT, *args])
