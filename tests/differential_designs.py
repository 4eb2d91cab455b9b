"""Random models: node types in every layout, linked by edges, mirrors, copies, references, paths, unions and finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from graph.errors import GraphError
from graph.model import Model
from resolvers.sdl import compile_model

COMMON = """enum State { OPEN SHUT GONE }
input Weights { from: Int  to: Int }
input Days { from: Date  to: Date }
"""
OBJECTS = """type Size { width: Int!  unit: String  inner: Inner  marks: [String!] }
type Inner { depth: Float  note: String!  when: DateTime }
"""
MENU = (
    *(
        "title: String",
        "title: String!",
        "grams: Int",
        "grams: Int!",
        "ratio: Float",
        "isOld: Boolean",
        "price: Decimal",
    ),
    *("count: BigInt", "made: DateTime", "made: DateTime!", "any: JSON", "raw: Base64", "tag: ID"),
    *("names: [String!]", "names: [String]!", "grid: [[Int!]]", "marks: [String!] @attribute(set: true)"),
    *("size: Size", "size: Size!", "sizes: [Size!]", "sizes: [Size]!", "states: [State!]"),
    *('renamed: String @attribute(name: "other-name")', "body: String @blob(gzip: true)"),
    *('scan: Base64 @blob(s3: "scans", over: 40)', 'parts: [Size!] @blob(gzip: true, s3: "scans", over: 60)'),
)
KEYS = (
    '@node(key: "{letter}#{number}")',
    '@node(key: "{letter}#{number}")',
    '@node(partition: "{letter}#{number}", sort: "{letter}")',
    '@node(partition: "{letter}#{number}", sort: "{label:lower}", ref: "{letter}#{number}")',
    '@node(partition: "{letter}#{number}", sort: "IN#{state}", ref: "{letter}#{number}")',
    '@node(key: "{letter}#{number}", virtual: true)',
    '@node(partition: "{letter}#{number}", sort: "v0_{letter}") @history',
    '@node(table: "side", partition: "{letter}#{number}")',
)
INDEXED = {
    '@indexed(by: "by-a", partition: "{letter}#{state}", sort: "{weight:06}#{number}")': (
        "(state: State!): [{type}!]! @find",
        "(state: State!, weight: Weights): [{type}!]! @find",
        "(state: [State!]!, weight: Weights): [{type}!]! @find(sort: DESC)",
        "(state: State, weight: Int!): [{type}!]! @find",
        "(state: State!): {type} @find",
    ),
    '@indexed(by: "by-a", partition: "{letter}#{state}", sort: "{day}")': (
        "(state: State!, day: Days): [{type}!]! @find",
        "(state: State, day: Days): [{type}!]! @find(sort: DESC)",
        "(state: State!, day: Date!): {type} @find(sort: DESC)",
    ),
    '@indexed(by: "by-a", partition: "{letter}#{shard(3)}", sort: "{state}-{day}")': (
        "(state: State!, day: Days): [{type}!]! @find",
        "(state: State): [{type}!]! @find",
        "(state: State!, day: Date!): [{type}!]! @find(sort: DESC)",
    ),
    '@indexed(by: "by-a", partition: "{label:lower}", sort: "{letter}#{day}")': (
        "(label: String!, day: Days): [{type}!]! @find",
        "(label: [String!]!): [{type}!]! @find",
        "(label: String!): {type} @find",
    ),
}
"""The ways into the index by-a, each with the finds that it serves."""


@dataclass
class Kind:
    """A type that is being designed: its directives and its fields, as text."""

    name: str
    directives: str
    fields: list[str]
    implements: str = ""
    finds: tuple[str, ...] = ()

    @property
    def low(self) -> str:
        """Name a field that leads to it."""
        return self.name[:1].lower() + self.name[1:]

    @property
    def is_aside(self) -> bool:
        """Say whether its items lie in the second table."""
        return "side" in self.directives

    @property
    def is_virtual(self) -> bool:
        """Say whether it has no items."""
        return "virtual" in self.directives

    def written(self) -> str:
        """Write the type as schema.graphql has it."""
        head = f"type {self.name}{self.implements} {self.directives}".rstrip()
        return head + " {\n  " + "\n  ".join(self.fields) + "\n}\n"


@dataclass
class Design:
    """A whole model that is being designed."""

    dice: Random
    kinds: list[Kind] = field(default_factory=list)
    unions: list[str] = field(default_factory=list)
    finds: list[str] = field(default_factory=list)
    pairs: set[frozenset[str]] = field(default_factory=set)
    indexes: list[str] = field(default_factory=list)

    def chance(self, share: float) -> bool:
        """Throw the dice."""
        return self.dice.random() < share

    def nodes(self) -> list[Kind]:
        """List the kinds that edges may link."""
        return [kind for kind in self.kinds if kind.directives.startswith("@node") and "CHILD" not in kind.directives]

    def sdl(self) -> str:
        """Write the model."""
        dice = self.dice
        tag = dice.choice(["", "", ', type: "kind"'])
        case = dice.choice(["", "", "", ", attributeCase: PASCAL", ", attributeCase: SNAKE"])
        shown = dice.choice(["", "", "", ', projection: ["KEYS_ONLY"]', ', projection: ["label", "Label", "weight"]'])
        head = (
            f'extend schema\n  @table(name: "main", partitionKey: "pk", sortKey: "sk"{tag}{case})\n'
            f'  @index(name: "turned", partitionKey: "sk", sortKey: "pk"{shown})\n'
            f'  @index(name: "by-a", partitionKey: "ap", sortKey: "as"{dice.choice(["", "", shown])})\n'
            + "".join(f"  {index}\n" for index in self.indexes)
        )
        if any(kind.is_aside for kind in self.kinds):
            head += '  @table(name: "side", partitionKey: "id")\n'
        types = "".join(kind.written() for kind in self.kinds)
        query = "type Query {\n  " + "\n  ".join(self.finds) + "\n}\n" if self.finds else ""
        used = OBJECTS if "Size" in types else ""
        interface = "interface Named { label: String  number: ID! }\n" if "Named" in types + query else ""
        return head + COMMON + used + interface + types + "".join(self.unions) + query


def design(dice: Random) -> str:
    """Design a model: not every one can work, and the compiler says which."""
    made = Design(dice)
    for letter, name in zip("ABCD", ("Alpha", "Beta", "Gamma", "Delta")[: dice.randrange(2, 5)], strict=False):
        made.kinds.append(_node(made, letter, name))
    for number in range(dice.randrange(1, 4)):
        _edge(made, number)
    if made.chance(0.5):
        _child(made)
    if made.chance(0.5):
        _reference(made)
    if made.chance(0.4):
        _union(made)
    if made.chance(0.4):
        _path(made)
    _add_finds(made)
    return made.sdl()


def designed(dice: Random) -> tuple[str, Model]:
    """Design models until one compiles."""
    while True:
        sdl = design(dice)
        try:
            return sdl, compile_model(sdl)
        except GraphError:
            continue


def _node(made: Design, letter: str, name: str) -> Kind:
    dice = made.dice
    key = dice.choice(KEYS).replace("{letter}", letter)
    finds: tuple[str, ...] = ()
    fields = ["number: ID!", "label: String", "state: State", "weight: Int", "day: Date"]
    if "{label" in key:
        fields[1] = "label: String!"
    if "{state" in key:
        fields[2] = "state: State!"
    if "virtual" in key:
        fields = fields[:1]
    else:
        more = {one.split(":")[0]: one for one in dice.sample(MENU, dice.randrange(0, 7))}
        fields += more.values()
        if "@history" in key or made.chance(0.15):
            fields.append("version: Int @version")
        if made.chance(0.15):
            fields.append(f"expires: {dice.choice(['Int', 'DateTime'])} @ttl")
        if made.chance(0.6) and "side" not in key:
            indexed = dice.choice(list(INDEXED))
            finds = INDEXED[indexed]
            key += " " + indexed.replace("{letter}", letter)
    # Virtual ones have a number alone, which the interface asks more than.
    implements = (
        " implements Named" if made.chance(0.4) and "virtual" not in key and fields[1] == "label: String" else ""
    )
    return Kind(name, key, fields, implements, finds)


def _edge(made: Design, number: int) -> None:
    dice = made.dice
    nodes = [kind for kind in made.nodes() if not kind.is_aside]
    if not nodes:
        return
    one, other = dice.choice(nodes), dice.choice(nodes)
    pair = frozenset((one.name, other.name))
    if pair in made.pairs:
        return
    made.pairs.add(pair)
    name = f"Link{number}"
    start, end = ("source", "target") if one is other else (one.low, other.low)
    copied = made.chance(0.4) and not other.is_virtual
    copy = f', copy: "{end}"' if copied else ""
    text = f'@edge(partition: "{{{start}}}", sort: "{{{end}}}"{copy})'
    if made.chance(0.25) and one is not other:
        back = f', copy: "{start}"' if made.chance(0.5) and not one.is_virtual else ""
        text += f'\n  @edge(partition: "{{{end}}}", sort: "{{{start}}}"{back})'
    fields = [f"{start}: {one.name}!", f"{end}: {other.name}!"]
    fields += [f"own{number}: {dice.choice(['Int', 'String', 'String!', 'Date', 'Size', '[Int!]'])}"]
    others = [kind.name for kind in nodes if kind.name not in pair]
    if others and made.chance(0.4):
        fields.append(f"witness: {dice.choice(others)}")
    made.kinds.append(Kind(name, text, fields))
    if one is other:
        one.fields.append(f'to{number}: [{other.name}!]! @relationship(through: "{name}", from: "source")')
        one.fields.append(f'of{number}: [{one.name}!]! @relationship(through: "{name}", from: "target")')
        return
    one.fields.append(f'{other.low}s{number}: [{other.name}!]! @relationship(through: "{name}")')
    back = f"{one.name}" if made.chance(0.3) else f"[{one.name}!]!"
    other.fields.append(f'{one.low}{"s" if "[" in back else ""}{number}: {back} @relationship(through: "{name}")')


def _child(made: Design) -> None:
    parents = [kind for kind in made.nodes() if not kind.is_aside]
    if not parents:
        return
    parent = made.dice.choice(parents)
    seq = made.dice.choice(["seq: Int!", "seq: ID!"])
    form = "{seq:03}" if "Int" in seq else "{seq}"
    text = f'@node(partition: "{{{parent.low}}}", sort: "CHILD#{form}")'
    more = made.dice.sample(MENU, 2)
    if made.chance(0.4):
        text += f' @indexed(by: "by-a", partition: "CHILD#{{state}}", sort: "{{{parent.low}.number}}#{form}")'
        made.finds.append("childrenOf(state: State!): [Child!]! @find")
    fields = [f"{parent.low}: {parent.name}!", seq, "state: State", *{m.split(":")[0]: m for m in more}.values()]
    made.kinds.append(Kind("Child", text, fields))
    parent.fields.append(
        made.dice.choice(["children: [Child!]! @relationship", "children: [Child!]! @relationship(consistent: true)"])
    )


def _reference(made: Design) -> None:
    targets = made.nodes()
    sources = [kind for kind in targets if not kind.is_virtual and not kind.is_aside]
    if not sources:
        return
    source, target = made.dice.choice(sources), made.dice.choice(targets)
    owner = f"owner: {target.name}{made.dice.choice(['', '', '!'])}"
    source.fields.append(owner + ' @attribute(name: "ownerKey")')
    if made.chance(0.7):
        shown = made.dice.choice(["", ', projection: ["KEYS_ONLY"]'])
        made.indexes.append(f'@index(name: "by-owner", partitionKey: "ownerKey", sortKey: "pk"{shown})')
        many = made.dice.choice([f"[{source.name}!]!", f"[{source.name}!]!", source.name])
        target.fields.append(f'owned: {many} @relationship(through: "{source.name}", from: "owner")')


def _union(made: Design) -> None:
    members = made.dice.sample(made.nodes(), min(len(made.nodes()), 2))
    if len(members) < 2:
        return
    names = " | ".join(kind.name for kind in members)
    made.unions.append(f"union Thing = {names}\n")
    if made.chance(0.5) or any(kind.is_aside for kind in members):
        holders = [kind for kind in made.nodes() if not kind.is_virtual]
        if holders:
            made.dice.choice(holders).fields.append('about: Thing @attribute(name: "aboutKey")')
        return
    tag = Kind("Tag", '@node(key: "TAG#{name}", virtual: true)', ["name: ID!"])
    copied = ', copy: "thing"' if made.chance(0.5) and not any(kind.is_virtual for kind in members) else ""
    edge = Kind(
        "Tagging",
        f'@edge(partition: "{{tag}}", sort: "{{thing}}"{copied})',
        ["tag: Tag!", "thing: Thing!", "by: String"],
    )
    tag.fields.append("things: [Thing!]! @relationship")
    for kind in members:
        kind.fields.append("tags: [Tag!]! @relationship")
    made.kinds += [tag, edge]
    made.finds.append(made.dice.choice(["tagged(tag: [ID!]!): [Thing!]! @find", "tagged(tag: ID!): [Thing!]! @find"]))


def _path(made: Design) -> None:
    """Add a path over two relationships to many."""
    hops = [
        (kind, text.split(":")[0], text.split("[")[1].split("!")[0])
        for kind in made.nodes()
        for text in kind.fields
        if "[" in text and "@relationship" in text and "path" not in text
    ]
    pairs = [(one, two) for one in hops for two in hops if one[2] == two[0].name]
    if pairs:
        (kind, first, _), (_, second, end) = made.dice.choice(pairs)
        kind.fields.append(f'far: [{end}!]! @relationship(path: "{first}.{second}")')


def _add_finds(made: Design) -> None:
    for number, kind in enumerate(made.nodes()):
        for find in kind.finds:
            if made.chance(0.6):
                made.finds.append(f"find{number}x{len(made.finds)}{find}".replace("{type}", kind.name))
        if made.chance(0.25) and not kind.is_virtual:
            made.finds.append(f"all{number}: [{kind.name}!]! @find(scan: true)")
    if any(kind.implements for kind in made.kinds) and made.chance(0.6):
        made.finds.append("named: [Named!]! @find(scan: true)")
