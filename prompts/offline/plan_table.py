"""Plans over tables without a model: look-ups, lists, counts, sums, comparisons and extremes in English and Chinese.

A question has a plan only where it plainly names columns, whole cells or what the rows are, and where no word is left
over: each is one of those, a figure with a comparison, a word of size or one of the few words that ask.
"""

import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files

from prompts.plan_table import Operation, TableFilter, TablePlan, TableView
from prompts.text.amounts import NUMBER_WORDS, amount_of, amounts_in
from prompts.text.question import parse_question
from prompts.text.regex import regex
from prompts.text.words import HAN_STOP, STOPWORDS, fold, is_han, stem

_TOKEN = regex(r"\d[\d,.]*\d|\d|[^\W\d_\u4e00-\u9fff]+(?:['’]s\b)?|[\u4e00-\u9fff]")
_YEAR = regex(r"(?:1[5-9]|20)\d\d")
_WORDS = tomllib.loads(files("prompts.offline").joinpath("plan_table.toml").read_text(encoding="utf-8"))
_SIZES = {word: (row["end"], row["columns"]) for row in _WORDS["sizes"] for word in row["words"].split()}
_NUMBERS = NUMBER_WORDS | {word: place for place, word in enumerate("一二三四五六七八九十", 1)} | {"两": 2}
_PLAIN = {stem(word) for word in (*_WORDS["asking"].split(), *_WORDS["units"].split(), *STOPWORDS, *_NUMBERS)}
_PLAIN |= {*HAN_STOP, *_WORDS["asking_zh"]}
_SIZE = regex(r"[a-z]+|(?P<zh>最|多|更)(?P<of>便宜|[长短宽窄深浅重快慢贵老早新晚高大多低小少])")
_SIDES = (  # a comparison, what tells it before a figure, what after it
    ("at_least", r"at least|no less than|since|至少|不少于|不低于", r"\W?.{0,3}以上"),
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
_NO_FIGURE = regex(r"^(?:why|how come)\b|^what(?:['’]s| is) an? |为什么|为何|为啥|什么意思|吗", re.I)
DOCUMENT = "document"  # the further column of tables that several documents have
_DATED = regex(r"(?:19|20)\d\d|\bended\b|[年月期]")
_RATE = regex(r"rate|ratio|percent|price|average|%|率|单价|均", re.I)


def plan_offline(question: str, tables: Sequence[TableView]) -> TablePlan | None:
    """The plan of the table whose own names tell most of the question; None where no table tells all of it."""
    if parse_question(question).form in {"howto", "yesno"} or _NO_FIGURE.search(question):
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


# What those who report may be called, where each document is a row.
_REPORTS = {_root(word) for word in ("report", "company", "firm", *"公司企业报告")}


class _PlanReading:
    """A question held against one table; `used` are the places of its words that are accounted for."""

    def __init__(self, question: str, table: TableView) -> None:
        self.text, self.table, self.chinese = fold(question), table, is_han(question)
        self.tokens = [(match.start(), _root(match.group())) for match in _TOKEN.finditer(self.text)]
        self.own = [list(dict.fromkeys(row[c] for row in table.rows if row[c])) for c in range(len(table.columns))]
        self.numeric = [2 * sum(amount_of(cell) is not None for cell in own) > len(own) for own in self.own]
        self.label = self.numeric.index(False) if False in self.numeric else 0
        self.repeats = len(self.own[self.label]) < sum(bool(row[self.label]) for row in table.rows)
        self.used, self.filters = set[int](), list[TableFilter]()
        self.form, self.size = "", ""  # of the word of size: "est" of an extreme, "er" of a comparison, or plain

    def plan(self) -> TablePlan | None:
        """The plan, where nothing of the question is left over."""
        named, self.columns = self._named_cells(), self._named_columns()
        self._years()
        cues = [operation for operation, pattern in _CUES if self._is_new(re.search(pattern, self.text))]
        self._sizes()
        self._comparisons()
        plan = self._decided(cues[0] if cues else None, named, self._rows_named())
        left = {word for place, (_, word) in enumerate(self.tokens) if place not in self.used}
        return plan if left <= _PLAIN else None

    # --- what the question names

    def _find(self, name: Sequence[str]) -> set[int]:
        """The places of a name among the words not yet used, or none."""
        words = [word for _, word in self.tokens]
        for place in range(len(words) - len(name) + 1 if name else 0):
            places = set(range(place, place + len(name)))
            if words[place : place + len(name)] == list(name) and not self.used & places:
                return places
        return set()

    def _is_new(self, match: re.Match[str] | None) -> bool:
        """Whether a match is no part of a name ("total assets" asks for no sum); its words count as used then."""
        start, end = match.span() if match else (0, 0)
        places = {place for place, (at, _) in enumerate(self.tokens) if start <= at < end}
        known = bool(places) and places <= self.used
        self.used |= places
        return match is not None and not known

    def _keep(self, column: int, comparison: str, value: str) -> None:
        condition = {"column": self.table.columns[column], "comparison": comparison, "value": value}
        self.filters.append(TableFilter.model_validate(condition))

    def _named_cells(self) -> list[int]:
        """The columns of the cells that the question names as a whole, the longest first; each is a condition."""
        names = [(_tokens(cell), c, cell) for c, own in enumerate(self.own) if not self.numeric[c] for cell in own]
        columns = list[int]()
        for tokens, column, cell in sorted(names, key=lambda name: -len(name[0])):
            tells = len("".join(tokens)) > 2 - self.chinese and not set(tokens) <= STOPWORDS
            if tells and (places := self._find(tokens)):
                self.used |= places
                self._keep(column, "equal", cell)
                columns.append(column)
        return columns

    def _named_columns(self) -> list[int]:
        """The columns that the question names, in its order: by all words but the unit; else by a first half of its
        own."""
        every = [_tokens(re.sub(r"[(（].{0,200}?[)）]", " ", name)) for name in self.table.columns]
        names = [[word for word in words if not _YEAR.fullmatch(word)] or words for words in every]
        halves = [name[: max(1 + self.chinese, (len(name) + 1) // 2)] for name in names]
        whole = sorted(enumerate(names), key=lambda item: -len(item[1]))
        first = dict[int, int]()
        for column, name in whole + [item for item in enumerate(halves) if halves.count(item[1]) == 1]:
            if column not in first and (places := self._find(name)):
                self.used |= places
                first[column] = min(places)
        return sorted(first, key=first.__getitem__)

    def _years(self) -> None:
        """A year is that of cells such as "2023 Q1", or of the table."""
        for place, (_, word) in enumerate(self.tokens):
            if place not in self.used and _YEAR.fullmatch(word):
                held = [c for c, own in enumerate(self.own) if any(word in _tokens(cell) for cell in own)]
                if held:
                    self._keep(held[0], "contains", word)
                if held or word in _tokens(self.table.name):
                    self.used.add(place)

    def _about(self, word: str) -> int | None:
        """The column of figures that a word of size is about, else the first one that the question names."""
        about = {_root(term) for term in _SIZES[word][1].split()} if word else set()
        fits = [c for c, name in enumerate(self.table.columns) if self.numeric[c] and about & set(_tokens(name))]
        named = [c for c in self.columns if self.numeric[c]]
        return next((c for c in (*[c for c in named if c in fits], *fits, *named)), None)

    def _sizes(self) -> None:
        """The word of size with its form; of several the one that says most."""
        for match in _SIZE.finditer(self.text):
            word, head = match["of"] or _size(match.group()), self.text[: match.start()]
            if word and not head.endswith("at ") and self._is_new(match):
                extreme = re.search(r"est$|^(?:most|least|top)$|^最", match.group())
                form = "est" if extreme else "er" if re.search(r"er$|^(?:more|less)$", match.group()) else ""
                self.form, self.size = max((self.form, self.size), (form, word))

    def _comparisons(self) -> None:
        """Keeps the rows whose figures meet the question's comparisons; one without a column leaves its figure over."""
        for amount in amounts_in(self.text):
            head, raw = self.text[: amount.start].rstrip(" 于在$€£¥"), self.text[amount.start : amount.end]
            column = self._about("old" if _YEAR.fullmatch(raw) else self.size)
            for comparison, before, after in _SIDES:
                cue = re.search(rf"(?:{before})$", head) or re.compile(rf"\s?(?:{after})").match(self.text, amount.end)
                if cue and column is not None:
                    self._is_new(cue)
                    self._is_new(re.compile(re.escape(raw)).search(self.text, amount.start))
                    self._keep(column, comparison, raw)
                    self.columns = [c for c in self.columns if c != column]
                    break

    def _rows_named(self) -> bool:
        """Whether the question says what the rows are ("bridges")."""
        ends = [tokens[-1] for cell in self.own[self.label] if (tokens := _tokens(cell))] if self.own else []
        nouns = {word for word in ends if ends.count(word) > 1} | set(_tokens(self.table.name))
        nouns |= _REPORTS if DOCUMENT in self.table.columns else set()
        places = {place for place, (_, word) in enumerate(self.tokens) if word in nouns - _PLAIN} - self.used
        self.used |= places
        return bool(places)

    # --- what to do

    def _made(
        self, operation: Operation, columns: Sequence[int], group: int | None = None, **more: object
    ) -> TablePlan:
        names = tuple(self.table.columns[column] for column in columns)
        if group is not None and (group != self.label or self.repeats):
            more["group_by"] = self.table.columns[group]
        return TablePlan.model_validate({"operation": operation, "columns": names, "filters": self.filters, **more})

    def _decided(self, cue: Operation | None, named: Sequence[int], rows: bool) -> TablePlan | None:
        things = [c for c in self.columns if not self.numeric[c] and c not in named]
        figures = [c for c in self.columns if self.numeric[c]]
        end, row_named = _SIZES[self.size][0] if self.size else 0, self.label in named
        measure, group = self._about(self.size), things[0] if things else self.label
        dated = [c for c, numeric in enumerate(self.numeric) if numeric]
        if measure is None and row_named and dated and all(_DATED.search(self.table.columns[c]) for c in dated):
            measure, figures = dated[0], dated[:1]  # what stands first is the newest
            group = self.table.columns.index(DOCUMENT) if DOCUMENT in self.table.columns else group
        if measure is None and (row_named or self.form == "est"):
            return self._made("lookup", things) if row_named and things and cue is None else None
        if measure is None:
            counted = self._made("count", [], group) if cue == "count" else None
            return (counted or (self._made("list", [group]) if self.filters else None)) if things or rows else None
        if cue == "difference" or self.form == "er":
            pair = next((column for column in named if named.count(column) > 1), None)
            order, two = "ascending" if end < 0 else "descending", cue if cue == "difference" else "compare"
            return None if pair is None else self._made(two, [measure], pair, order=order)
        total: Operation = "average" if cue == "average" or _RATE.search(self.table.columns[measure]) else "sum"
        if self.form == "est" and cue != "average":  # not: who designed the oldest bridge
            extreme: Operation = "max" if end > 0 else "min"
            plain = not (things and _SIZES[self.size][1])
            return self._made(extreme, [measure], group, aggregate=total, limit=self._limit()) if plain else None
        if row_named and (cue is None or (cue == "count" and not self.repeats)):
            return self._made("lookup", [measure] if self.size else [*figures, *things])
        return self._made(total, [measure]) if cue and (cue == "average" or total == "sum") else None

    def _limit(self) -> int:
        """How many are asked for: "the two longest", "top 3"."""
        counts = [place for place, (_, word) in enumerate(self.tokens) if word in _NUMBERS or re.fullmatch(r"\d", word)]
        self.used |= set(counts[:1])
        return next((_NUMBERS.get(word) or int(word) for _, word in (self.tokens[place] for place in counts)), 0)
