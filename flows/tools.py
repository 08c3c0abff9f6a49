"""The read-only tools over a workspace: one list, which MCP serves (`service/mcp_server.py`) and
mode `agent` calls (`modes/agent.py`).

A tool is an async function: its name, its docstring and its annotated arguments are what a model
reads of it. Its result is a record that quotes documents with their places.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from flows.service import reading
from flows.session import Session
from storage.answer_records import Passage
from storage.errors import NotFound
from tasks.agent import Refused
from tasks.retrieve.facts import GraphFacts

T = TypeVar("T")
Tool = Callable[..., Awaitable[Any]]

SHOWN = 25  # relations, claims, facts, reports
FOUND = 5  # passages of a search by words, unless the caller gives a number


class Reader(Protocol):
    """Calls a function with the session of a workspace, outside of the event loop."""

    def __call__(self, function: Callable[[Session], T], /) -> Awaitable[T]: ...


def reader_of(session: Session) -> Reader:
    """Return a reader of an open session, which calls functions in a thread."""

    def read(function: Callable[[Session], T], /) -> Awaitable[T]:
        return asyncio.to_thread(function, session)

    return read


class WorkspaceTools:
    """The tools, over what `read` gives. `only` restricts them to what these documents state, all
    but `reports` and `schema`.
    """

    def __init__(self, read: Reader, only: Sequence[str] | None = None) -> None:
        self._read = read
        self._only = only

    @property
    def listed(self) -> tuple[Tool, ...]:
        return self.search_words, self.entity, self.paths, self.reports, self.schema

    async def search_words(
        self,
        words: Annotated[str, Field(description="Words, names, numbers or codes.", min_length=1)],
        k: Annotated[int, Field(description="How many passages.", ge=1, le=50)] = FOUND,
    ) -> list[Passage]:
        """Find the passages that hold most of these words, the rarer ones first."""
        return await self._read(lambda session: session.index.by_words(words, k, self._only))

    async def entity(
        self, name: Annotated[str, Field(description="A name or alias.")]
    ) -> list[reading.EntityView]:
        """Tell what the graph holds on an entity: description, relations and claims with
        sources.
        """
        views = (
            await self._known(lambda session: reading.look_up(name, session.generation))
        ).entities
        if (only := self._only) is not None:
            stated = (reading.entity_within(view, only) for view in views)
            views = tuple(view for view in stated if view is not None)
            if not views:
                raise NotFound(f"The graph knows nothing called {name!r}.")
        return [
            view.model_copy(
                update={
                    "relations": view.relations[:SHOWN],
                    "claims": view.claims[:SHOWN],
                    "facts": view.facts[:SHOWN],
                }
            )
            for view in views
        ]

    async def paths(
        self,
        start: Annotated[str, Field(description="The name of an entity.")],
        end: Annotated[str, Field(description="The name of another.")],
    ) -> list[reading.GraphPath]:
        """Tell how two entities are connected: the shortest chains of relations, with sources."""
        found = await self._known(
            lambda session: reading.paths_between(session, start, end, facts=self._facts(session))
        )
        return list(found.paths)

    async def reports(
        self,
        report: Annotated[
            str | None, Field(description="A report's `community`, for it in full.")
        ] = None,
        level: Annotated[int, Field(description="Of the list; 0 is the broadest.", ge=0)] = 0,
    ) -> list[reading.ListedReport] | reading.ReportView:
        """List the reports on groups of entities, the most important first, or give one in full."""
        if report is not None:
            return await self._read(lambda session: reading.report_view(report, session.generation))
        listed = await self._read(lambda session: reading.list_reports(session.generation))
        rows = [row for row in listed.values() if row.level == level][:SHOWN]
        return [row.model_copy(update={"findings": ()}) for row in rows]

    async def schema(self) -> reading.SchemaView:
        """Tell which kinds of entities, attributes and relations have typed facts, and how many;
        mode `facts` computes over them. Empty where the index has no schema.
        """
        view = await self._read(lambda session: reading.schema_view(session.generation))
        return view.model_copy(update={"left_out": view.left_out[:SHOWN]})

    async def _known(self, function: Callable[[Session], T]) -> T:
        """Read what a name leads to; the error for an unknown one names no others where the
        documents are restricted.
        """
        try:
            return await self._read(function)
        except NotFound as error:
            if self._only is None:
                raise
            raise NotFound(error.message) from None

    def _facts(self, session: Session) -> GraphFacts | None:
        """Return the relations that the documents state; None for all of them."""
        if self._only is None:
            return None
        documents = frozenset(self._only)
        chunks = session.index.chunks
        return session.graph.facts.stated_in(
            chunk.id for chunk in chunks if chunk.document in documents
        )


# --- calls by a model's texts ---------------------------------------------------------------------


def described(tool: Tool) -> str:
    """Describe a tool in one line: its name, its arguments with their meaning, what it does."""
    arguments = "; ".join(
        f"{name}{'' if row.default is row.empty else '?'}: {_meaning(row)}"
        for name, row in inspect.signature(tool).parameters.items()
    )
    return f"{tool.__name__}({arguments}) {' '.join((inspect.getdoc(tool) or '').split())}"


def arguments_of(tool: Tool, given: Sequence[str]) -> Mapping[str, object]:
    """Return the arguments of a tool by name, made of texts in its order, each of its type.

    Raises Refused, which says what is wrong.
    """
    signature = inspect.signature(tool)
    most = len(signature.parameters)
    needed = sum(row.default is row.empty for row in signature.parameters.values())
    if not needed <= len(given) <= most:
        many = f"{needed} to {most}" if needed < most else str(most)
        raise Refused(f"{len(given)} arguments were given, not {many}: {described(tool)}")
    values: dict[str, object] = {}
    for (name, row), text in zip(signature.parameters.items(), given, strict=False):
        try:
            values[name] = TypeAdapter(row.annotation).validate_python(text)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]["msg"]
            raise Refused(f"{name} of {tool.__name__} is {text[:80]!r}: {problem}.") from error
    return values


def _meaning(parameter: inspect.Parameter) -> str:
    """Return the description of an argument's annotation, without its full stop."""
    fields = getattr(parameter.annotation, "__metadata__", ())
    return next((str(field.description) for field in fields if field.description), "").rstrip(".")
