"""Does the trigger know our own paraphrases, and what does it cost with many entries?

A set has groups: a question that fills memory (`fill`), two in other words (`paraphrases`), one that differs in a name,
an attribute or a year and needs other evidence (`confusable`), and the two texts. The rules were written with the odd
groups in view; the even ones are measured apart, though one person wrote both.
"""

import asyncio
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from flows.index import IndexOptions, build_index
from flows.memory import recalled
from flows.query import answer_question
from flows.question import AskOptions, QuestionContext
from flows.runtime import Runtime, open_runtime
from flows.session import Session, open_session
from flows.settings import load_settings
from prompts.engine.spending import Meter
from prompts.rewrite import Rewrite
from storage.memory import MemoryEntry
from tasks.question_similarity import keys
from tasks.rewrite import rewrite

OWN = Path(__file__).parent
LANGUAGES = ("zh", "en")
TAUS = (0.4, 0.6, 0.8, 0.9, 1.0)


def runtime_of(folder: Path, **settings: object) -> Runtime:
    """The runtime of the folder's workspace."""
    return open_runtime(load_settings({"workspace": folder / "ws", **settings}))


def indexed(folder: Path, documents: Sequence[Mapping[str, object]]) -> None:
    """Make a workspace of these rows in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "rows.jsonl"
    source.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in documents), encoding="utf-8")
    asyncio.run(build_index([source], IndexOptions(), runtime_of(folder)))


async def fires(question: str, session: Session) -> bool:
    """Whether the trigger would serve a question from memory; nothing is answered or kept."""
    models = session.runtime.models.metered(Meter())
    asked = await rewrite(question, (), Rewrite(models))
    embedder = session.runtime.embedder.metered(models.meter)
    question_asked = QuestionContext(session, AskOptions(), asked.question, asked.queries, models, embedder)
    return (await recalled(question_asked)).used


def own_set(folder: Path, language: str) -> None:
    """Prints for each τ the share of paraphrases and of confusable questions that memory would serve."""
    path = OWN / f"memory_paraphrases_{language}.jsonl"
    groups = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    indexed(
        folder,
        [
            {"id": f"{group['group']}-{name}", "text": group[name]}
            for group in groups
            for name in ("text", "confusable_text")
        ],
    )
    for tau in TAUS:
        with open_session(runtime_of(folder, tau=tau)) as session:
            for group in groups if tau == TAUS[0] else ():
                asyncio.run(answer_question(group["fill"], AskOptions(), session))
            if tau == TAUS[0]:
                print(
                    f"{language}: {len(session.runtime.workspace.side.memory.titles())} of {len(groups)} are remembered"
                )
            for name, part in (("odd", groups[::2]), ("even", groups[1::2]), ("all", groups)):
                hits, missed = _share(part, "paraphrases", session)
                false, wrong = _share(part, "confusable", session)
                print(f"{language} τ {tau} {name}: hit {hits:.3f}, false {false:.3f} of {len(part)} groups", flush=True)
                for question in (missed + wrong) if tau == 0.8 and name == "odd" else ():
                    print(f"    {question}")
        session.runtime.workspace.side.close()


def _share(groups: Sequence[Mapping[str, object]], field: str, session: Session) -> tuple[float, list[str]]:
    """How many of the questions memory would serve, and those where it errs."""
    values = [group[field] for group in groups]
    questions = [one for value in values for one in (value if isinstance(value, list) else [value])]
    served = [asyncio.run(fires(str(one), session)) for one in questions]
    wanted = field == "paraphrases"
    return statistics.mean(served), [
        str(one) for one, is_used in zip(questions, served, strict=True) if is_used != wanted
    ]


def many_entries(folder: Path, number: int) -> None:
    """Prints the processor time of the trigger with so many entries, for questions that name something and not."""
    indexed(
        folder,
        [{"id": f"d{i}", "text": f"Harl{i} Bridge was built by Tom Korb{i} in {1700 + i % 300}."} for i in range(2000)],
    )
    runtime = runtime_of(folder)
    with open_session(runtime) as session:
        memory = runtime.workspace.side.memory
        for i in range(number):
            title = f"Who built the Harl{i % 2000} Bridge{'' if i < 2000 else f' in {i}'}?"
            entry = MemoryEntry(
                source=f"d{i % 2000}", title=title, content="x" * 600, evidence=(session.index.chunks[i % 2000].id,),
                documents=(f"d{i % 2000}",), generation=session.number,
            )  # fmt: skip
            memory.put(entry, keys(session.question_features.asked(title)))
        for kind, texts in {
            "named": [f"Who was the builder of the Harl{i} Bridge?" for i in range(0, 2000, 10)],
            "in many titles": ["Who built it?", "What was built in 1800?", "When was the bridge built?"] * 20,
            "Chinese": [f"Harl{i}大桥是谁修建的?" for i in range(0, 2000, 40)],
        }.items():
            spent = []
            for text in texts:
                began = time.process_time()
                asyncio.run(fires(text, session))
                spent.append(time.process_time() - began)
            print(f"{number} entries, {kind}: {statistics.median(spent) * 1000:.2f} ms of processor time a question")
