"""What do the documents' titles (StructRAG's core content C) say about the structure that fits them?"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from prompts.routing.signs import Vote
from prompts.structures.checks import StructureName

# Core content beyond so many documents says nothing new.
READ = 40
# A first sentence in place of a title is read as far as a title would go.
LONGEST = 80
_KINDS: tuple[tuple[StructureName, float, str, re.Pattern[str]], ...] = (
    (
        "table",
        1.2,
        "the titles are of reports with figures",
        re.compile(
            r"\b(?:annual|quarterly|financial|results|balance|budget|accounts|statistics?|census|dataset|data ?sheet|"
            r"spec(?:s|ifications?)|price list|ranking|league|scoreboard|ledger|income|earnings|prospectus|figures|"
            r"10-[KQ]|trial|benchmark|inventory|records?|yearbook)\b|年报|年度报告|季报|财报|财务|业绩|预算|决算|"
            r"统计|年鉴|资产负债|利润表|"
            r"参数|规格|价目|排行|数据|成绩单|报表|普查|台账|招股",
            re.I,
        ),
    ),
    (
        "algorithm",
        1.2,
        "the titles are of guides and rules",
        re.compile(
            r"\b(?:guides?|manuals?|protocols?|runbooks?|handbooks?|checklists?|instructions?|procedures?|tutorials?|"
            r"how[- ]to|playbooks?|recipes?|cookbook|set-?up|installation|maintenance|troubleshooting|operating|"
            r"workflow|"
            r"onboarding|first aid|itinerar\w+|standard operating|SOP|evacuation|regulations?)\b|"
            r"指南|手册|规程|流程|教程|须知|操作|说明书|指引|清单|菜谱|攻略|预案|办法|保养|维护|步骤|急救",
            re.I,
        ),
    ),
    (
        "catalogue",
        1.05,
        "the titles are of texts that discuss",
        re.compile(
            r"\b(?:minutes|essays?|interviews?|reviews?|chapters?|letters?|notes|diar(?:y|ies)|white ?papers?|surveys?|"
            r"commentar(?:y|ies)|opinions?|statements?|lectures?|speech(?:es)?|debates?|testimon\w+|position|"
            r"editorials?|"
            r"column|memoirs?|reflections?|feedback|consultation|critics?|philosophy|sermons?|podcast|transcripts?|"
            r"discussion|response to)\b|纪要|随笔|散文|访谈|评论|章|来信|笔记|日记|白皮书|综述|意见|证词|讲座|演讲|"
            r"辩论|社论|"
            r"专栏|回忆|反馈|发言|述评|书评|影评|感想|^论|研讨|心得|座谈",
            re.I,
        ),
    ),
    (
        "graph",
        0.9,
        "the titles are of people and what ties them",
        re.compile(
            r"\b(?:famil(?:y|ies)|genealog\w+|shareholdings?|ownership|org(?:ani[sz]ation)? chart|personnel|suppliers?|"
            r"patents?|papers?:|dynast(?:y|ies)|house of|pedigree|biograph(?:y|ies)|correspondence|treaty|treaties|"
            r"wars? of|network|affiliat\w+|genes?|proteins?|pathways?|subsidiar\w+|holdings?|teacher and pupil|"
            r"citations?)\b|"
            r"家谱|族谱|股权|任命|履历|专利|世系|传记|书信|条约|之战|关系|谱系|供应商|论文|案卷|生平|师承|集团|控股",
            re.I,
        ),
    ),
)
_FIGURE = re.compile(r"\d+|[〇零一二三四五六七八九十甲乙丙丁]+|\b(?:[IVX]+|[A-Z])\b")
_WORD = re.compile(r"[a-z]{3,}|[\u4e00-\u9fff]")
_PARALLEL = 0.9


def title_votes(core_content: Sequence[str]) -> Iterator[Vote]:
    """A hint for each kind of title, as strong as the share of the documents that have it.

    Titles that run parallel ("Annual report 2021, 2022, 2023") are of things that can be set side by side.
    """
    titles = [title[:LONGEST] for title in core_content[:READ]]
    if not titles:
        return
    kinds = [_kinds(title) for title in titles]
    for structure, weight, reason, _ in _KINDS:
        share = sum(structure in found for found in kinds) / len(titles)
        if share >= 1 / 3:
            yield Vote(structure, weight * share, reason)
    if len(titles) > 2 and _parallel(titles) and not any("catalogue" in found for found in kinds):
        yield Vote("table", _PARALLEL, "the titles run parallel")


@lru_cache(maxsize=4_096)
def _kinds(title: str) -> frozenset[StructureName]:
    return frozenset(structure for structure, _, _, pattern in _KINDS if pattern.search(title))


def _parallel(titles: Sequence[str]) -> bool:
    """Whether most titles share most of their plain words (names and figures apart)."""
    words = [_plain(title) for title in titles]
    shared = {word for word in set().union(*words) if sum(word in own for own in words) >= 0.75 * len(titles)}
    return bool(shared) and sum(len(shared & own) for own in words) >= 0.4 * sum(len(own) for own in words)


@lru_cache(maxsize=4_096)
def _plain(title: str) -> frozenset[str]:
    return frozenset(_WORD.findall(_FIGURE.sub(" ", title).lower()))
