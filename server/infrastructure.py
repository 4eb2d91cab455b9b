"""`tablegraph table cloudformation` and `table terraform`: what the model needs to exist, as a template to deploy."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from graph.errors import InputError
from graph.infrastructure.cloudformation import cloudformation
from graph.infrastructure.resources import Resources, resources_of
from graph.infrastructure.terraform import terraform
from server.settings import Settings
from server.tables import model_of

MISUSED = 2


def add_infrastructure(commands: Any, command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands to the command line."""

    def printing(write: Callable[[Resources], str]) -> Callable[[argparse.Namespace, Settings], int]:
        def run(options: argparse.Namespace, settings: Settings) -> int:
            try:
                needed = resources_of(
                    model_of(settings),
                    options.period,
                    mutations=settings.mutations,
                    stream=settings.stream != "off",
                )
            except InputError as error:
                sys.stderr.write(f"{error}\n")
                return MISUSED
            sys.stdout.write(write(needed))
            return 0

        return run

    for name, write, title in (
        ("cloudformation", cloudformation, "a CloudFormation template"),
        ("terraform", terraform, "a Terraform configuration"),
    ):
        text = f"print {title} of the tables, the buckets and the server's rights (less with --mutations false)"
        parser = command(commands, name, printing(write), text, settings=True)
        parser.add_argument("--period", metavar="PERIOD", help="with the tables of this period of a time series")
