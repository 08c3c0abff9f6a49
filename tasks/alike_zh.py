"""Do two Chinese questions ask the same? What they share, what each has alone, and whether that says another thing.

Chinese has no spaces and its names are often not in the graph: the longest stretches that both questions have are taken
out, then the words that ask, then function words. What is left on both sides was put in the other's place.
"""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from prompts.language.words import CJK, fold

# One meaning a line, general words of questions; a word of the one question may stand for a word of the other.
_MEANINGS = """
设计 设计者 设计师 出自 之手
建造 修建 建成 兴建 竣工 完工 落成 始建 建于 造的 盖的 制造
创立 创办 成立 创建 创始 创始人 创办人 始创 开办 建立
造价 费用 花费 花了 成本 价格 售价 耗资 经费 多少钱 卖多少
收入 营收 营业额 营业收入
利润 盈利 赚 净利
出生 生于 诞生 出生年 哪里人 出生地
去世 逝世 死于 病逝 过世 死亡 遇难 丧生 身亡 遇害 死了
作者 撰写 编写 写的 写了 谁写 所写 著 作家 写作
导演 执导 拍摄 拍的
演唱 唱了 唱的 歌手 演唱者 主唱
全长 长度 多长 长达 有多长
高度 多高 海拔 有多高
重量 多重 有多重 重多少 公斤
速度 时速 最快 多快 最高时速 最大速度 跑多快
地点 举行 举办 举办地
源头 发源 发源地 发源于
产地 产自 出产 产于 生产 产品 出产的
通车 开通 启用 通行
容纳 座位 坐多少 坐得下
妻子 夫人 太太 老婆 娶 配偶
丈夫 先生 嫁
父亲 爸爸 生父
母亲 妈妈 生母
儿子 女儿 孩子 子女
老师 导师 师从
毕业 母校 就读 毕业于
奖 奖项 获奖 得过 获得 荣获
冠军 夺冠 获胜 赢得
人口 人数 多少人 游客 旅游 参加 参赛 接待
主编 总编
社长 负责人 主任 所长 馆长 院长 校长 领导 总裁
船长 掌舵
朝代 年代
发现 找到
公司 厂家 企业 厂商
面积 占地 多大面积
宽度 多宽
深度 多深
年龄 几岁 多少岁 岁数
国籍 哪国人
职业 从事
职务 职位 官职
哥哥 兄长
弟弟 胞弟
首都 国都
出版 发行 刊行
上映 首映 公映
票价 门票 入场费
电话 号码 联系方式
地址 住址 住在 居住
成员 队员 组员
目的 目标 宗旨
特点 特色 特征
用途 用处 功能 作用 用来 用于
组成 构成 包括 包含 分为
种类 类型 类别
来源 来自 取自
规模 大小
几点开门 开门时间 开放时间 营业时间
关闭 停业 倒闭 歇业
改名 更名 改称 改为
旧称 原名 曾用名 前身
搬迁 迁往 迁到 迁至 搬到
合并 并入
收购 买下 购得 并购
投资 出资
捐赠 捐出 捐助 捐献
发明 研制 研发 开发
击败 战胜 打败
就任 上任 就职 任职
退休 卸任 离任
得名 命名 取名
翻译 译者 译成 译为
主持 主管 负责
沉没 沉船
爆发 发生 出现
结束 终止 停止
开始 启动 开工 动工 始于
提出 倡导
原料 材料 用料
产量 年产 出产量
"""
_SHORT = frozenset("奖著娶嫁赚")
_ASKING = re.compile(
    "哪一年|哪年|何年|什么时候|何时|哪天|哪一天|年份|时间|日期|哪位|哪个人|何人|是谁|谁|哪里|哪儿|何处|什么地方|哪座城市|"
    "哪个城市|哪个国家|哪个地方|多少|几[个座名位张口艘条所间支种]?|有多[大高长重远深宽久快]|多[大高长重远深宽久快]|"
    "哪[一]?[个家座位部本首所支种条些]|什么|怎么|为什么|为何|叫什么名字|叫什么|名字"
)
_FILLER = re.compile(
    "位于|坐落|地处|设在|所在|请问|现任|现在|目前|如今|一共|总共|共有|分别|这[部本位座首个家所条]|那[部本位座首个家口条]|担任|主要|东西|"
    "[的了是在由于和与里中上内有被把为从呢吗过着地得时个座位次名之到给叫年能可以会并又也都这那所其将第 ]"
)
_NOT_HAN = re.compile(rf"[^{CJK}0-9a-z]+")
_MARK = "\ue000\ue000"
_RUN = 2  # characters that a shared stretch has at least
_LONGEST = 120  # characters of a question that are compared


@dataclass(frozen=True, slots=True)
class Compared:
    """What two questions share and have alone, in characters; `another`: they ask for or about something else."""

    shared: int
    one: str
    two: str
    another: bool

    @property
    def likeness(self) -> float:
        """0-1: the share of what is common; what stands on one side alone counts half of what was replaced."""
        alone = (len(self.one) + len(self.two)) / (1 if self.another else 2)
        return self.shared / (self.shared + alone) if self.shared else 0.0


@lru_cache(maxsize=1)
def _meaning_of() -> dict[str, int]:
    found: dict[str, int] = {}
    for number, line in enumerate(_MEANINGS.strip().splitlines()):
        for word in line.split():
            found.setdefault(word, number)
    return found


@lru_cache(maxsize=1)
def _words() -> re.Pattern[str]:
    return re.compile("|".join(sorted(map(re.escape, _meaning_of()), key=lambda one: (-len(one), one))))


@lru_cache(maxsize=20_000)
def compared(one: str, two: str) -> Compared:
    """The comparison of two questions, in either order."""
    first, second = (_NOT_HAN.sub("", fold(text))[:_LONGEST] for text in (one, two))
    mine, yours = _meanings(first), _meanings(second)
    same, first, second = _without_shared(first, second)
    before = _meanings(first) | _meanings(second)
    asked = _meanings(first) ^ _meanings(second)
    another = not asked <= mine & yours
    first, second = (_rest(text, mine & yours) for text in (first, second))
    return Compared(same + len(mine & yours & before), first, second, another or bool(first and second))


def _meanings(text: str) -> frozenset[int]:
    return frozenset(_meaning_of()[word] for word in _words().findall(text))


def _without_shared(one: str, two: str) -> tuple[int, str, str]:
    """Takes out the longest stretches that both have; their characters that say something, and what is left."""
    said = 0
    while True:
        match = SequenceMatcher(None, one, two, autojunk=False).find_longest_match()
        stretch = one[match.a : match.a + match.size]
        if match.size < _RUN or "|" in stretch:
            return said, one, two
        said += len(_FILLER.sub("", _ASKING.sub("", stretch)))
        one = one[: match.a] + "|" + one[match.a + match.size :]
        # Another mark: the marks themselves are never alike.
        two = two[: match.b] + "_" + two[match.b + match.size :]


def _rest(text: str, known: frozenset[int]) -> str:
    """What a side says alone: without words of a meaning that the other has too, words that ask, and fillers."""
    # A word of a meaning that the other lacks stays whatever it is made of, as two marks.
    text = _words().sub(lambda found: "" if _meaning_of()[found.group()] in known else _MARK, text)
    return _FILLER.sub("", _ASKING.sub("", text.replace("|", " ").replace("_", " ")))
