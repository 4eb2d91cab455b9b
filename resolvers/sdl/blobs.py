"""Fields with @blob: which values may be kept compressed or in a bucket, and how."""

from __future__ import annotations

import re
from collections.abc import Mapping

from graph.codec import Read, Write
from graph.model import FieldKind, ItemType
from graph.packing import Blob, Form
from resolvers.sdl.declarations import Declarations, DeclaredField, DeclaredType, Directive
from resolvers.sdl.paths import keyed
from resolvers.sdl.report import Report

LARGE = ("String", "JSON", "Base64")
"""The scalars whose values may be large."""
FORMS = {"String": Form.TEXT, "Base64": Form.BINARY}
OVER_BYTES = 100_000
MOST_OVER_BYTES = 400_000
"""What DynamoDB's items hold at most, nearly."""
_BUCKET = re.compile(r"(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def blob_of(field: DeclaredField, read: Read, write: Write, read_json: Read) -> Blob | None:
    """Make what a field's @blob says."""
    use = field.directives.get("blob")
    if use is None:
        return None
    form = Form.JSON if field.type.of is not None else FORMS.get(field.type.name, Form.JSON)
    over = OVER_BYTES if use.get("over") is None else use.get("over")
    return Blob(bool(use.get("gzip")), use.get("s3"), over, form, read, write, read_json)


class Blobs:
    """Looks at the fields with @blob, and reports those that cannot be kept so."""

    def __init__(self, declared: Declarations, items: Mapping[str, ItemType], report: Report) -> None:
        self._declared = declared
        self._items = items
        self._report = report
        self._keyed = keyed(items)

    def check(self) -> None:
        """Report everything."""
        for type_ in self._declared.types.values():
            for field in type_.fields.values():
                use = field.directives.get("blob")
                if use is not None and not self._report.blames(field.node):
                    self._check(type_, field, use)

    def _check(self, type_: DeclaredType, field: DeclaredField, use: Directive) -> None:
        where = f"`{type_.name}.{field.name}`"
        others = [name for name in ("version", "count", "default", "ttl") if name in field.directives]
        if not type_.keys or type_.keys[0].get("virtual"):
            if not self._report.blames(*self._declared.directives(type_.name)):
                self._report.add(
                    use.node,
                    f"{where} is no field of an item's own, and only attributes of items are kept elsewhere: expected "
                    "@blob on a field of a type with @node or @edge that is not virtual. Move it there",
                )
        elif not self._may_be_large(type_, field):
            self._report.add(
                field.node,
                f"{where} is {field.type}, whose values are never large: expected {', '.join(LARGE)}, a type without "
                "items, or a list of them. Change its type, or remove @blob",
            )
        elif others:
            self._report.add(
                use.node,
                f"{where} has @blob and @{others[0]}, which says what the value is: expected a value that is written "
                "and read whole. Remove one of the two",
            )
        elif template := self._keyed.get((type_.name, field.name)):
            self._report.add(
                use.node,
                f"{where} has @blob and is part of the key {template.source!r}, which holds the value itself: expected "
                "a field that no key holds. Take it out of the key, or remove @blob",
            )
        else:
            self._check_arguments(where, field, use)

    def _may_be_large(self, type_: DeclaredType, field: DeclaredField) -> bool:
        made = self._items[type_.name].fields[field.name]
        return made.kind is FieldKind.ATTRIBUTE and (made.scalar is None or made.scalar.name in LARGE)

    def _check_arguments(self, where: str, field: DeclaredField, use: Directive) -> None:
        bucket, over, of_set = use.get("s3"), use.get("over"), field.directives.get("attribute")
        if of_set is not None and of_set.get("set"):
            self._report.add(
                of_set.at("set"),
                f"{where} has @blob, and what is compressed or lies elsewhere is no set: expected a list. Remove "
                "`set`, or @blob",
            )
        elif bucket is None and not use.get("gzip"):
            self._report.add(
                use.node,
                f"{where}: this @blob says nothing: expected `gzip` or `s3`. Write @blob(gzip: true), or "
                '@blob(s3: "…") with the name of a bucket',
            )
        elif bucket is not None and not _BUCKET.fullmatch(bucket):
            self._report.add(
                use.at("s3"),
                f"{where}: {bucket!r} is no name of a bucket: expected 3 to 63 lower-case letters, digits, `-` and "
                "`.`. Write the bucket's name alone",
            )
        elif over is not None and bucket is None:
            self._report.add(
                use.at("over"),
                f"{where}: `over` is the size in bytes from which on a value goes to a bucket, and there is none: "
                'expected `s3`. Write @blob(s3: "…", over: …), or remove `over`',
            )
        elif over is not None and not 0 <= over <= MOST_OVER_BYTES:
            self._report.add(
                use.at("over"),
                f"{where}: `over` is {over}, and an item holds no more than 400 KB: expected 0 to {MOST_OVER_BYTES} "
                "bytes. Write such a number, or leave it out",
            )
