"""Other writings of one name: titles, legal forms, inverted names, figures, spaces, Chinese script.

`form` gives all of them one key. It is about the writing alone: whether two things of one form are one thing also
depends on their kinds.
"""

import re
from functools import lru_cache

from prompts.language.kinds import KIND_OF, kind_of_words
from prompts.language.words import CJK, fold, fold_name

# Before a full name they say what somebody is; those that may stand for a spouse ("Mrs John Smith") are left out.
PERSONAL_TITLES = frozenset(
    """mr dr prof professor sir dame rev reverend president captain capt colonel col general gen lieutenant lt major sgt
    sergeant admiral judge justice senator sen congressman minister chancellor governor mayor inspector detective
    engineer director chairman bishop archbishop cardinal pope emperor king queen prince princess duke earl baron count
    lord hon honourable honorable doctor master""".split()
)
LEGAL_FORMS = frozenset(
    """inc incorporated corp corporation co company ltd limited llc llp plc gmbh ag kg sa nv bv spa oy ab srl pty kk
    holdings group""".split()
)
_SURE_FORMS = LEGAL_FORMS - {"company", "group", "holdings", "co", "sa", "ag", "ab", "spa"}
ZH_TITLE = re.compile(r"(?:先生|女士|博士|教授|老师|总统|主席|院士|将军|经理|工程师|同志)$")
_ZH_LEGAL = re.compile(r"(?:股份有限公司|有限责任公司|有限公司|集团公司)$")
_ONE_WRITING = {
    "st": "saint", "mt": "mount", "ft": "fort", "univ": "university", "dept": "department", "intl": "international",
    "natl": "national", "assoc": "association", "bros": "brothers", "centre": "center", "theatre": "theater",
    "harbour": "harbor", "labour": "labor", "defence": "defense", "colour": "color", "organisation": "organization",
    "honour": "honor", "jr": "junior", "sr": "senior", "no": "number", "govt": "government", "inst": "institute",
    "iii": "3", "iv": "4", "vi": "6", "vii": "7", "viii": "8", "ix": "9", "xi": "11", "xii": "12", "xiii": "13",
    "xiv": "14", "xv": "15", "xvi": "16", "ii": "2", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6",
    "seven": "7", "eight": "8", "nine": "9", "ten": "10", "first": "1st", "second": "2nd", "third": "3rd",
    "fourth": "4th", "fifth": "5th",
}  # fmt: skip
_NO_NAME = KIND_OF.keys() | {"of", "and", "in", "at", "for", "to", "with", "elector", "bishop", "abbess"}
_FILLERS = frozenset({"and", "the"})
_LEAST_COMPACT = 6  # letters from which a name without its spaces is still that name
_SCRIPTS = (
    "愛礙罷備貝筆畢邊變標別賓補財參倉產長嘗場車陳稱誠遲齒衝蟲醜處傳創純詞從叢錯達帶單擔當黨導燈鄧敵遞點電東動獨讀對隊頓"
    "爾發範飛費豐風馮婦復該蓋幹岡鋼個給宮鞏貢溝構購鼓顧關觀館廣歸龜規國過漢號賀紅後護華畫話懷壞歡環還黃會惠滙匯機積擊"
    "極級幾計記濟紀際繼價堅間艱監簡見劍薦漸踐將獎蔣講膠階節傑結潔緊進盡勁經莖驚競淨糾舊舉劇據絕軍開凱殼課庫塊寬礦擴"
    "蘭藍覽蠟來賴蕾壘類離禮裏歷麗聯連蓮憐戀練糧兩遼療獵臨鄰鈴靈齡領劉龍樓盧蘆爐陸錄慮綠亂倫論羅邏馬買賣麥滿貓貿沒門們"
    "蒙夢彌綿廟滅閔鳴銘謀畝納難鬧腦擬鳥寧農諾歐盤賠噴鵬頻貧憑評樸齊騎啟氣棄遷簽錢潛淺強牆橋喬親輕傾頃慶窮瓊區趨權勸卻"
    "讓擾熱認榮銳潤灑薩賽傷燒紹設審腎聲勝聖師詩時識實視試適勢釋壽書術樹數順說絲飼鬆蘇肅雖隨歲孫損態臺檯灘談譚湯討騰題體"
    "條鐵聽廳頭圖塗團萬網韋違圍為偉衛溫聞問烏無吳務誤習襲戲細峽俠嚇廈鮮賢縣現線鄉詳響項蕭協寫謝興兇許續選學尋訓壓亞煙"
    "鹽嚴閻顏楊陽養樣藥爺葉業頁醫遺義藝億憶異陰銀飲隱應營擁詠優郵遊魚與語園員圓緣遠願約躍雲運雜災載暫讚臟則澤賊曾贈"
    "閘齋債戰張漲賬趙針陣鎮鄭證職執紙製鐘終種眾週諸豬築專磚轉莊裝壯狀準資縱總組鑽嶽劃龐灣濱滬",
    "爱碍罢备贝笔毕边变标别宾补财参仓产长尝场车陈称诚迟齿冲虫丑处传创纯词从丛错达带单担当党导灯邓敌递点电东动独读对队顿"
    "尔发范飞费丰风冯妇复该盖干冈钢个给宫巩贡沟构购鼓顾关观馆广归龟规国过汉号贺红后护华画话怀坏欢环还黄会惠汇汇机积击"
    "极级几计记济纪际继价坚间艰监简见剑荐渐践将奖蒋讲胶阶节杰结洁紧进尽劲经茎惊竞净纠旧举剧据绝军开凯壳课库块宽矿扩"
    "兰蓝览蜡来赖蕾垒类离礼里历丽联连莲怜恋练粮两辽疗猎临邻铃灵龄领刘龙楼卢芦炉陆录虑绿乱伦论罗逻马买卖麦满猫贸没门们"
    "蒙梦弥绵庙灭闵鸣铭谋亩纳难闹脑拟鸟宁农诺欧盘赔喷鹏频贫凭评朴齐骑启气弃迁签钱潜浅强墙桥乔亲轻倾顷庆穷琼区趋权劝却"
    "让扰热认荣锐润洒萨赛伤烧绍设审肾声胜圣师诗时识实视试适势释寿书术树数顺说丝饲松苏肃虽随岁孙损态台台滩谈谭汤讨腾题体"
    "条铁听厅头图涂团万网韦违围为伟卫温闻问乌无吴务误习袭戏细峡侠吓厦鲜贤县现线乡详响项萧协写谢兴凶许续选学寻训压亚烟"
    "盐严阎颜杨阳养样药爷叶业页医遗义艺亿忆异阴银饮隐应营拥咏优邮游鱼与语园员圆缘远愿约跃云运杂灾载暂赞脏则泽贼曾赠"
    "闸斋债战张涨账赵针阵镇郑证职执纸制钟终种众周诸猪筑专砖转庄装壮状准资纵总组钻岳划庞湾滨沪",
)
_SIMPLIFIED = str.maketrans(*_SCRIPTS)
_HAN = re.compile(f"[{CJK}]")
_INVERTED = re.compile(r"([^,，]+),\s*([^,，]+)")
_BLANK = re.compile(r"(?<!\d) | (?!\d)")


@lru_cache(maxsize=300_000)
def form(name: str) -> tuple[str, str]:
    """The key that all writings of a name share, and in what this writing differs from the plainest one."""
    if _HAN.search(name):
        return _chinese(name)
    reason = ""
    inverted = _INVERTED.fullmatch(name) if "," in name else None
    if inverted and _may_be_given(inverted[2]):
        name, reason = f"{inverted[2]} {inverted[1]}", "the last name stands first"
    words = _joined_initials(fold_name(name.replace("&", " and ")))
    titles = _titles(words)
    if titles:
        words, reason = words[titles:], "a title stands before the name"
    if len(words) > 1 and words[-1] in _SURE_FORMS:
        while len(words) > 1 and words[-1] in LEGAL_FORMS:
            words = words[:-1]
        reason = "the legal form stands after the name"
    plain = [words[0], *(_ONE_WRITING.get(word, word) for word in words[1:] if word not in _FILLERS)] if words else []
    plain[:1] = [{"st": "saint", "mt": "mount", "ft": "fort"}.get(word, word) for word in plain[:1]]
    # Without blanks, but figures stay apart from figures.
    compact = _BLANK.sub("", " ".join(plain))
    return compact if len(compact) >= _LEAST_COMPACT else " ".join(plain) or name, reason


def simplified(text: str) -> str:
    """Traditional characters as simplified ones, as far as names commonly hold them."""
    return text.translate(_SIMPLIFIED)


def _chinese(name: str) -> tuple[str, str]:
    whole = simplified(fold_name(name)).replace(" ", "")
    plain = _ZH_LEGAL.sub("", whole)
    if len(plain) >= 2 and plain != whole:
        return plain, "the legal form stands after the name"
    plain = ZH_TITLE.sub("", whole)
    if len(plain) >= 2 and plain != whole:
        return plain, "a title stands after the name"
    return whole, ""


def _joined_initials(folded: str) -> list[str]:
    """Words, with initials that follow each other as one ("j r r tolkien" → "jrr", "tolkien")."""
    words: list[str] = []
    run = ""
    for word in folded.split():
        if len(word) == 1 and word.isalpha():
            run += word
            continue
        if run:
            words.append(run)
            run = ""
        words.append(word)
    return [*words, run] if run else words


def _titles(words: list[str]) -> int:
    """How many titles stand before a full name; none before what is no person's ("Duke of Hask", "General Motors")."""
    count = next((place for place, word in enumerate(words) if word not in PERSONAL_TITLES), 0)
    if not count or len(words) - count < 2 or kind_of_words(words) or words[count] in _NO_NAME:
        return 0
    return count


def _may_be_given(text: str) -> bool:
    """Whether what stands behind a comma may be given names or initials: no suffix, and short."""
    words = fold(text).replace(".", " ").split()
    return 0 < len(words) <= 4 and not {*words} & (LEGAL_FORMS | {"jr", "sr", "junior", "senior", "the", "of"})


def initials_of(name: str) -> str:
    """The first letters of a name's words, as an abbreviation writes them ("orla bridge company" → "obc")."""
    return "".join(word[0] for word in fold_name(name).split() if word not in _FILLERS | {"of", "for", "in", "de"})
