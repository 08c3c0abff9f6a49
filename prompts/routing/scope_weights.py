"""What does each sign of `prompts.routing.scope` weigh? Fitted by benchmarks/auto_weights.py."""

WEIGHTS_EN: dict[str, float] = {
    "(bias)": -0.81, "names something": -3.31, "asks whether anything of the kind is there": 2.31,
    "asks what is said in all of them": 2.14, "asks about those who speak": 2.01,
    "asks what is said often or as a rule": 1.11, "asks what is said": 1.04, "asks for an overview": 1.01,
    "asks for different views": 1.01, "asks for topics, views or concerns": 0.95,
    "asks for one passage": 0.75, "asks what those who speak say": 0.09,
    "asks for a chain of relations": -0.94, "asks how something is done": -0.99, "asks for steps": -1.02,
    "asks for one thing": -1.2, "asks for a figure or a date": -1.55, "asks about what it names": -1.72,
    "asks which has the most or the least of something": -1.88, "holds figures": -2.42, "these": 1.37,
    "their": 1.23, "guests": 1.16, "or": 1.14, "people": 1.08, "has": 0.89, "them": 0.79, "about": 0.65,
    "group": 0.65, "do": 0.63, "up": 0.54, "same": 0.44, "that": 0.44, "this": 0.38, "would": 0.38,
    "you": 0.37, "things": 0.32, "seem": 0.28, "each": 0.26, "put": 0.23, "they": 0.22, "way": 0.22,
    "does": 0.21, "it": 0.19, "are": 0.16, "to": 0.14, "many": -0.07, "i": -0.12, "s": -0.17, "on": -0.18,
    "first": -0.25, "an": -0.33, "reasons": -0.35, "a": -0.42, "may": -0.43, "which": -0.44, "of": -0.48,
    "main": -0.49, "did": -0.67, "in": -0.78, "for": -0.84, "were": -0.96, "is": -1.03, "was": -1.06,
}  # fmt: skip

WEIGHTS_ZH: dict[str, float] = {
    "(bias)": -1.54, "names something": -0.92, "speaks of the whole": 1.8,
    "asks what those who speak say": 1.63, "asks about those who speak": 1.62, "asks for a mood": 1.36,
    "speaks of the collection itself": 0.77, "asks what is said in all of them": 0.29,
    "asks for one passage": 0.25, "asks what is said often or as a rule": 0.15,
    "asks how something is done": 0.06, "asks what is said": -0.16, "asks for a figure or a date": -0.84,
    "asks for steps": -1.05, "asks for different views": -1.09,
    "asks which has the most or the least of something": -1.23, "asks for a chain of relations": -1.51,
    "asks for topics, views or concerns": -1.65, "asks about what it names": -2.04, "这": 2.11, "心": 2.01,
    "没": 1.69, "吗": 1.45, "们": 1.34, "差": 1.32, "话": 1.23, "里": 1.16, "底": 1.15, "不": 1.13, "写": 0.94,
    "成几": 0.83, "看": 0.81, "还": 0.8, "里的": 0.63, "人": 0.57, "来": 0.57, "情": 0.53, "样": 0.52, "类": 0.48,
    "都": 0.48, "有没": 0.43, "是怎": 0.42, "子": 0.4, "儿": 0.39, "着": 0.36, "的人": 0.32, "能": 0.31, "么": 0.3,
    "大": 0.3, "和": 0.27, "上": 0.2, "大家": 0.2, "讲": 0.2, "分": 0.15, "事": 0.12, "方": 0.12, "后": 0.11, "下": 0.1,
    "说": 0.1, "老": 0.07, "一": 0.06, "想": 0.06, "是什": -0.06, "月": -0.06, "三": -0.07, "理": -0.08, "变化": -0.09,
    "化": -0.11, "列": -0.15, "本": -0.17, "为": -0.2, "中": -0.21, "长": -0.21, "哪": -0.23, "要": -0.23,
    "提": -0.25, "提到": -0.33, "于": -0.36, "见": -0.37, "请": -0.43, "少": -0.47, "次": -0.52, "因": -0.89,
    "哪一": -1.05, "发": -1.28, "电": -1.35,
}  # fmt: skip
