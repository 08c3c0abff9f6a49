"""Plans over tables without a model: comparisons, counts, sums, extremes and look-ups in English and Chinese.

A question is held against each table's own names. Each of its words has to be a column, a cell, a figure with a
comparison or one of the few words below: where one is left over there is no plan, since it may change what is asked.
"""

import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files

from prompts.plan_table import Operation, TableFilter, TablePlan, TableView
from prompts.text.amounts import amount_of, amounts_in
from prompts.text.question import parse_question
from prompts.text.words import HAN_STOP, STOPWORDS, fold, is_han, stem

_TOKEN = re.compile(r"\d[\d,.]*\d|\d|[^\W\d_\u4e00-\u9fff]+(?:['’]s\b)?|[\u4e00-\u9fff]")
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_WORDS = tomllib.loads(files("prompts.offline").joinpath("plan_table.toml").read_text(encoding="utf-8"))
_SIZES = {word: (row["end"], row["columns"]) for row in _WORDS["sizes"] for word in row["words"].split()}
_NUMBERS = dict[str, int](_WORDS["numbers"])
_PLAIN = {stem(word) for word in (*_WORDS["asking"].split(), *_WORDS["units"].split(), *STOPWORDS, *_NUMBERS)}
_PLAIN_HAN = HAN_STOP | set(_WORDS["asking_zh"])
_WORD = re.compile(r"[a-z]+|最(?P<zh>便宜|[长短宽窄深浅重快慢贵老早新晚高大多低小少])|多(?P<adj>[长宽深高重快])")
_YES_NO = re.compile(r"^(?:did|does|do|is|are|was|were|has|have|can)\b|吗")
_SIDES = (  # a comparison, what tells it before a figure, what after it
    ("at_least", r"at least|no less than|since|between|至少|不少于|不低于", r"\W?.{0,3}以上"),
    ("at_most", r"at most|no more than|up to|不超过|至多", r"\W?.{0,3}以下"),
    ("less", r"under|below|less than|fewer than|before|小于|低于|少于|不到|短于", r"年?[之以]?前"),
    ("more", r"over|above|more than|exceed(?:s|ing)?|after|超过|大于|高于|多于|长于", r"年?[之以]?后"),
)  # fmt: skip
_CUES: tuple[tuple[Operation, str], ...] = (
    ("difference", r"\bdifference\b|\bhow (?:much|many) (?=more|fewer|less|\w+er\b)|相差|差多少|(?=[长短高低]多少)"),
    ("average", r"\baverage\b|\bmean\b|平均"),
    ("sum", r"\b(?:in )?total\b|\bsum\b|\baltogether\b|\bcombined\b|\boverall\b|总共|一共|总和|合计|之和|总"),
    ("count", r"\bhow many\b|\bnumber of\b|\bcount\b|多少|几(?=[座条个家位艘辆种名])"),
)
_EXPLAINED = re.compile(r"^(?:why|how come)\b|^what(?:['’]s| is) an? |为什么|为何|为啥|什么意思", re.I)
_DOCUMENT = "document"
_DATED = re.compile(r"(?:19|20)\d\d|\bended\b|[年月期]")
_RATE = re.compile(r"rate|ratio|percent|price|average|%|率|单价|均", re.I)


def plan_offline(question: str, tables: Sequence[TableView]) -> TablePlan | None:
    """The plan of the table whose own names tell most of the question; None where no table tells all of it.

    What to do is no figure of a table: a question for steps, a reason or a meaning has no plan."""
    if parse_question(question).form == "howto" or _EXPLAINED.search(question):
        return None
    readings = [_PlanReading(question, table) for table in tables]
    plans = [
        (plan, number, len(reading.used)) for number, reading in enumerate(readings, 1) if (plan := reading.plan())
    ]
    plan, number, _ = max(plans, key=lambda item: item[2], default=(None, 0, 0))
    return plan.model_copy(update={"table": number}) if plan else None


def _tokens(text: str) -> list[str]:
    return [_root(match.group()) for match in _TOKEN.finditer(fold(text.replace("_", " ")))]


def _root(word: str) -> str:
    """A word without its endings: owner, owns and owned are one, so are designer and designed."""
    word = stem(re.sub(r"['’]s$", "", word))
    return word[:-2] if len(word) > 4 and word.endswith(("er", "or")) else word


def _size(word: str) -> str:
    """The word of size that a form of it belongs to ("largest", "heavier", "bigger"), else nothing."""
    bare = re.sub(r"(?:est|er)$", "", word)
    return next((form for form in (word, bare, f"{bare}e", bare[:-1], f"{bare[:-1]}y") if form in _SIZES), "")


# What those who report may be called.
_REPORTS = {_root(word) for word in ("report", "company", "firm", "公", "司", "企", "业", "报", "告")}


class _PlanReading:
    """A question held against one table; `used` are the places of its words that are accounted for."""

    def __init__(self, question: str, table: TableView) -> None:
        self.text, self.table, self.chinese = fold(question), table, is_han(question)
        self.tokens = [(match.start(), _root(match.group())) for match in _TOKEN.finditer(self.text)]
        self.own = [list(dict.fromkeys(row[c] for row in table.rows if row[c])) for c in range(len(table.columns))]
        self.numeric = [2 * sum(amount_of(cell) is not None for cell in own) > len(own) for own in self.own]
        self.label = next((place for place, numeric in enumerate(self.numeric) if not numeric), 0)
        self.labels = self.own[self.label] if self.own else []
        # Statements: figures under dates, told of several documents.
        self.dated = [c for c, numeric in enumerate(self.numeric) if numeric]
        self.dated = self.dated if all(_DATED.search(table.columns[c]) for c in self.dated) else []
        self.document = table.columns.index(_DOCUMENT) if _DOCUMENT in table.columns else None
        self.repeats = len(self.labels) < sum(bool(row[self.label]) for row in table.rows if row)
        self.used, self.nouned, self.filters = set[int](), False, list[TableFilter]()

    def plan(self) -> TablePlan | None:
        """The plan, where nothing of the question is left over."""
        self.cells, self.columns = self._named_cells(), self._named_columns()
        self._dates()
        sizes = self._sizes()
        if _YES_NO.search(self.text) or not self.labels or not self._conditions(sizes):
            return None
        cue = self._cue()
        self._nouns()
        plan = self._decided(cue, sizes)
        left = [word for place, (_, word) in enumerate(self.tokens) if place not in self.used]
        return None if any(word not in (_PLAIN_HAN if self.chinese else _PLAIN) for word in left) else plan

    def _find(self, name: Sequence[str]) -> list[int]:
        """The places of a name among the words not yet used, or none."""
        for place in range(len(self.tokens) - len(name) + 1 if name else 0):
            places = list(range(place, place + len(name)))
            if [self.tokens[at][1] for at in places] == list(name) and not self.used & set(places):
                return places
        return []

    def _mark(self, start: int, end: int) -> None:
        self.used |= {place for place, (at, _) in enumerate(self.tokens) if start <= at < end}

    def _named_cells(self) -> list[tuple[int, str]]:
        """(column, cell) of the cells that the question names: whole, or without a common last word."""
        names = []
        for column, own in enumerate(self.own):
            ends = [_tokens(cell)[-1:] for cell in own]
            for cell in own if not self.numeric[column] or column == self.label else ():
                tokens = _tokens(cell)
                names.append((tokens, column, cell))
                if column == self.label and len(tokens) > 1 + self.chinese and ends.count(tokens[-1:]) > 1:
                    names.append((tokens[:-1], column, cell))
        cells = list[tuple[int, str]]()
        for tokens, column, cell in sorted(names, key=lambda name: -len(name[0])):
            tells = len("".join(tokens)) > 2 - self.chinese and not set(tokens) <= STOPWORDS
            if tells and (column, cell) not in cells and (places := self._find(tokens)):
                self.used |= set(places)
                self._keep(column, "equal", cell)
                cells.append((column, cell))
        return cells

    def _named_columns(self) -> list[int]:
        """The columns that the question names: by all words but the unit; else by a first half of its own."""
        places_of: dict[int, int] = {}
        names = [_tokens(re.sub(r"[(（].*?[)）]", " ", name)) for name in self.table.columns]
        keys = [[word for word in words if not _YEAR.fullmatch(word)] or words for words in names]
        halves = [key[: max(1 + self.chinese, (len(key) + 1) // 2)] for key in keys]
        whole = sorted(enumerate(keys), key=lambda item: -len(item[1]))
        for column, name in whole + [item for item in enumerate(halves) if halves.count(item[1]) == 1]:
            places = self._find(name) if column not in places_of else []
            if places:
                places_of[column] = places[0]
                own = _tokens(self.table.columns[column])
                self.used |= {*places, *(at for at, (_, word) in enumerate(self.tokens) if word in own)}
        return sorted(places_of, key=lambda column: places_of[column])

    def _dates(self) -> None:
        """A year is that of a column's name, of cells such as "2023 Q1", of a column of years, or of the table."""
        for place, (at, word) in enumerate(self.tokens):
            if place in self.used or not _YEAR.fullmatch(word) or self._side(at, at + len(word), ""):
                continue
            heads = [c for c, name in enumerate(self.table.columns) if word in _tokens(name)]
            years = [c for c, own in enumerate(self.own) if word in own and all(map(_YEAR.fullmatch, own))]
            held = self._holding(word) or [c for c in years if c in self.columns] or years
            if heads:
                self.columns = [c for c in self.columns if c in heads or not self.numeric[c]] or heads
            elif held:
                self._keep(held[0], "contains", word)
                self.columns = [c for c in self.columns if c != held[0]]
            if heads or held or word in _tokens(self.table.name):
                self.used.add(place)

    def _holding(self, word: str) -> list[int]:
        """The columns of words in whose cells a word stands."""
        return [c for c, own in enumerate(self.own) if not self.numeric[c] and any(word in _tokens(x) for x in own)]

    def _keep(self, column: int, comparison: str, value: str) -> None:
        condition = {"column": self.table.columns[column], "comparison": comparison, "value": value}
        self.filters.append(TableFilter.model_validate(condition))

    def _about(self, word: str) -> int | None:
        """The column of figures that a word of size is about, else the first one that the question names."""
        about = {_root(term) for term in _SIZES[word][1].split()}
        fits = [c for c, name in enumerate(self.table.columns) if self.numeric[c] and about & set(_tokens(name))]
        named = [c for c in self.columns if self.numeric[c]]
        return next((c for c in (*[c for c in named if c in fits], *fits, *named)), None)

    def _sizes(self) -> list[tuple[str, str, int]]:
        """(form, word, place) of the words of size: extremes ("est"), comparisons ("er"), "how long", "200 m long"."""
        sizes = list[tuple[str, str, int]]()
        for match in _WORD.finditer(self.text):
            matched, head = match.group(), self.text[: match.start()]
            word = match["zh"] or match["adj"] or ("" if head.endswith("at ") else _size(matched))
            forms = {
                "how": match["adj"] or (matched == word and head.endswith("how ")),
                "est": match["zh"] or re.search(r"est$|^(?:most|least|top)$", matched) or head.endswith("most "),
                "er": re.search(r"er$|^(?:more|less)$", matched),
                "is": re.search(r"\d\s?[a-z]* $", head),
            }
            form = next((form for form, fits in forms.items() if word and fits), "")
            if form:
                sizes = [size for size in sizes if size[1] != "most" or form != "est"] + [(form, word, match.start())]
                self._mark(*match.span())
        return sizes

    def _side(self, start: int, end: int, last: str) -> str:
        """The comparison that the words around a figure make it, or nothing."""
        head = self.text[:start].rstrip(" 于在$€£¥")
        for comparison, before, after in _SIDES:
            if match := re.search(rf"(?:{before})$", head):
                self._mark(match.start(), start)
                return comparison
            if match := re.match(rf"\s?(?:{after})", self.text[end:]):
                self._mark(end, end + match.end())
                return comparison
        return "at_most" if last == "at_least" and re.search(r"(?:and|to|-|至|到|和)$", head) else ""

    def _conditions(self, sizes: list[tuple[str, str, int]]) -> bool:
        """Keeps the rows whose figures meet the question's comparisons; False where one has no column."""
        side = ""
        for amount in amounts_in(self.text):
            raw = self.text[amount.start : amount.end]
            than = re.search(r"([a-z]+) than $", self.text[: amount.start])
            word = _size(than[1]) if than else next((word for form, word, _ in sizes if form == "is"), "more")
            side = self._side(amount.start, amount.end, side)
            if than and word and not side:
                side = "more" if _SIZES[word][0] > 0 else "less"
            if not side:
                continue
            column = self._about("old" if _YEAR.fullmatch(raw) else word)
            if column is None:
                return False
            sizes[:] = [size for size in sizes if than is None or size[2] != than.start(1)]
            self._mark(amount.start, amount.end)
            self._keep(column, side, raw)
            self.columns = [c for c in self.columns if c != column]
        return True

    def _cue(self) -> Operation | None:
        """What is to be done, by words that are no part of a name ("total assets" asks for no sum)."""
        operations = []
        for operation, pattern in _CUES:
            match = re.search(pattern, self.text)
            within = {place for place, (at, _) in enumerate(self.tokens) if match and match.start() <= at < match.end()}
            if match and not (within and within <= self.used):
                operations.append(operation)
                self.used |= within
        return operations[0] if operations else None

    def _nouns(self) -> None:
        """What the rows are ("bridges"), and what stands in the cells of one column alone: "steel", "Ovane"."""
        ends = [tokens[-1] for cell in self.labels if (tokens := _tokens(cell))]
        nouns = {word for word in ends if ends.count(word) > 1} | set(_tokens(self.table.name))
        nouns |= _REPORTS if self.document is not None else set()
        for place, (at, word) in enumerate(self.tokens):
            if place in self.used or word in _PLAIN:
                continue
            held = self._holding(word)
            if word in nouns:
                self.used.add(place)
                self.nouned = True
            elif len(held) == 1 and len(word) > 2:
                self.used.add(place)
                raw = self.text[at:].split(maxsplit=1)[0].strip(".,?!\"'()")
                whole = any(raw in fold(cell) for cell in self.own[held[0]])
                self._keep(held[0], "contains", raw if whole else word)

    def _made(
        self, operation: Operation, columns: Sequence[int], group: int | None = None, **more: object
    ) -> TablePlan:
        names = tuple(self.table.columns[column] for column in columns)
        if group is not None and (group != self.label or self.repeats):
            more["group_by"] = self.table.columns[group]
        return TablePlan.model_validate({"operation": operation, "columns": names, "filters": self.filters, **more})

    def _decided(self, cue: Operation | None, sizes: Sequence[tuple[str, str, int]]) -> TablePlan | None:
        form, size = next(((form, word) for form, word, _ in sizes if form in {"est", "er"}), ("", ""))
        how = next((word for form, word, _ in sizes if form == "how"), "")
        named = [column for column, _ in self.cells]
        self.things = [c for c in self.columns if not self.numeric[c] and c not in named]
        self.group = self.things[0] if self.things else self.label
        figures = [c for c in self.columns if self.numeric[c]]
        measure = self._about(size or how) if size or how else next(iter(figures), None)
        if measure is None and self.dated and self.label in named:  # what stands first is the newest
            measure, figures = self.dated[0], self.dated[:1]
            self.group = self.group if self.document is None else self.document
        upwards = not size or _SIZES[size][0] > 0
        if cue == "difference" or form == "er":
            pair = next((column for column in named if named.count(column) > 1), None)
            order = "descending" if upwards else "ascending"
            if measure is None or pair is None:
                return None
            return self._made("difference" if cue == "difference" else "compare", [measure], pair, order=order)
        way: Operation | None = ("max" if upwards else "min") if size else None
        if measure is None:
            return self._of_things(cue, way, self.label in named)
        sums = not _RATE.search(self.table.columns[measure])
        if way and cue != "average":
            other = _SIZES[size][1] and self.things  # who designed the oldest bridge
            mean = "sum" if sums else "average"
            return None if other else self._made(way, [measure], self.group, aggregate=mean, limit=self._limit())
        if self.label in named and (cue is None or (cue == "count" and not self.repeats)):
            return self._made("lookup", [measure] if how else [*figures, *self.things])
        wanted: Operation | None = (
            "average" if cue == "average" else "sum" if sums and cue in {"sum", "count"} else None
        )
        return self._made(wanted, [measure]) if wanted else None

    def _of_things(self, cue: str | None, way: Operation | None, named: bool) -> TablePlan | None:
        """The plan where the question names no column of figures."""
        if way and self.things:
            return self._made(way, [self.label], self.group, aggregate="count", limit=self._limit())
        if named and cue is None and self.things:
            return self._made("lookup", self.things)
        if cue == "count" and (self.things or self.nouned):
            return self._made("count", [], self.group)
        if way or named or not self.filters or not (self.things or (self.nouned and self.table.columns[self.label])):
            return None
        return self._made("list", self.things[:1] or [self.label])

    def _limit(self) -> int:
        """How many are asked for: "the two longest", "top 3"."""
        counts = [place for place, (_, word) in enumerate(self.tokens) if word in _NUMBERS or re.fullmatch(r"\d", word)]
        self.used |= set(counts[:1])
        return next((_NUMBERS.get(word) or int(word) for _, word in (self.tokens[place] for place in counts)), 0)
