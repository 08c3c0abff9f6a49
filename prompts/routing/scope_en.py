"""Which wordings of an English question speak for the whole collection, which for a part of it?

Function words, verbs of saying and nouns for what is said or for who says it; nothing about any domain.
"""

from prompts.routing.scope_marks import Mark, mark

_SAY = (
    r"(?:discuss|mention|talk|speak|describe|cite|emphasi[sz]e|stress|highlight|perceive|predict|address|express|"
    r"voice|view|believe|recommend|advise|complain|suggest|argue|agree|disagree|touch on|bring up|raise|report|share|"
    r"identify|note|point out|reflect|see|feel|think|say|treat|portray|explore|worry|refer|object|praise|criticis?z?e|"
    r"regret|remember|give|acknowledge)(?:s|es|ed|d|ing)?"
)
# Those who say things, and what they are said in: the collection speaks of itself.
_SAYERS = (
    r"(?:guests?|speakers?|leaders?|authors?|interviewees?|respondents?|participants?|contributors?|witnesses|"
    r"reviewers?|writers?|customers?|users?|clients?|callers?|patients?|residents?|members|people|employees|staff|"
    r"scientists|researchers|experts|judges|executives|veterans|newcomers|students|teachers|parents|founders|"
    r"panelists|attendees|applicants|complainants|veterans|survivors|nurses|clinicians|physicians|doctors|"
    r"correspondents|companies|firms|teams|courts|characters|narrators|investors|analysts|managers)"
)
_PIECES = (
    r"(?:episodes?|interviews?|transcripts?|documents|corpus|collection|data ?set|articles|papers|reports|minutes|"
    r"tickets|letters|reviews|sessions|meetings|discussions|conversations|texts|sources|files|stories|chapters|"
    r"notes|records|cases|rulings|decisions|opinions|filings|surveys|responses|testimonies|diaries|entries|"
    r"podcasts?|show|series|coverage|posts|threads|messages|emails|speeches|sermons|essays|studies|archive|volumes?|novels|poems|logs|"
    r"statements|complaints|proceedings|submissions|books|tales|bulletins|newsletters)"
)
_SAID = (
    r"(?:topics?|themes?|subjects?|discussions?|conversations?|views?|viewpoints?|opinions?|perspectives?|anecdotes?|"
    r"quotes?|sentiments?|attitudes?|trends?|patterns?|lessons?|challenges?|concerns?|issues?|complaints?|problems?|"
    r"worries|fears|hopes|arguments?|ideas?|motifs?|questions?|reasons?|predictions?|experiences?|obstacles?|"
    r"suggestions?|recommendations?|criticisms?|misconceptions?|stances?|positions?|approach(?:es)?|mistakes?|"
    r"barriers?|hurdles?|tensions?|disagreements?|causes?|factors?|motivations?|strategies|values|mood|tone)"
)
_OFTEN = (
    r"(?:frequent(?:ly)?|often|common(?:ly|est)?|typical(?:ly)?|general(?:ly)?|consistent(?:ly)?|repeated(?:ly)?|"
    r"regular(?:ly)?|usual(?:ly)?|mostly|tend(?:s|ed)? to|recurr?(?:ing|ent|s)?|keeps? (?:coming|turning|cropping)|"
    r"again and again|time and again|over and over|prevalent|widespread|dominant|dominates?|prominent(?:ly)?)"
)

ENGLISH: tuple[Mark, ...] = (
    mark("asks what is said often or as a rule", rf"\b{_OFTEN}\b"),
    mark("asks what those who speak say",
         rf"\b{_SAYERS}\b[^?.,]{{0,30}}?\b{_SAY}\b|\b{_SAY} (?:by|from|among) (?:\w+ ){{0,3}}?{_SAYERS}\b|"
         rf"\baccording to (?:the |most |many |our )?{_SAYERS}\b|\bwho (?:else )?{_SAY} (?:about|of|that)\b"),
    mark("asks about those who speak",
         rf"\b(?:do|did|does|have|are|were|any|among|all|most|many|by|from|which|between|how) (?:\w+[- ]){{0,3}}?"
         rf"{_SAYERS}\b"),
    mark("asks what is said in all of them",
         rf"\b(?:which|any|across|throughout|in|from|among|between|all|these|those|most|the|of|over|do|are) "
         rf"(?:(?:the|these|those|all|different|various|of|our) )*(?:\w+ )?{_PIECES}\b"),
    mark("asks for topics, views or concerns", rf"\b{_SAID}\b"),
    mark("asks what is said",
         r"\b(?:discussed|mentioned|raised|expressed|highlighted|reported|voiced|cited|described|shared|addressed|"
         r"emphasi[sz]ed|predicted|portrayed|presented|brought up|talked about|come(?:s)? up|emerges?|referred to|"
         r"debated|complained about|depicted|suggested|recommended|treated|covered|revolve|"
         r"deal (?:primarily |mostly )?with|broached|point(?:s|ed)? to|seen as|considered)\b"),
    mark("asks whether anything of the kind is there",
         r"^(?:are|were|is|was) there (?:any |some |specific )?|^(?:do|did|does|have|has) any\b|"
         r"^can (?:you|we|any|real)\b.*\bf(?:ind|ound)\b|\bcan be found\b"),
    mark("speaks of the whole",
         r"\b(?:overall|as a (?:whole|group|body|set)|on the whole|in general|taken together|collectively|"
         r"across the board|throughout|big picture|by and large|all in all|over (?:these|the) years|"
         r"into (?:a handful of |a few |broad )?(?:kinds|types|categories|groups|themes|clusters)\b(?!.*\d)|"
         r"across (?:all|the|these|those|different|various|multiple|several)|"
         r"(?:main|major|central|key|overarching|principal|dominant|chief|biggest|unifying|common|shared) "
         rf"(?:\w+ )?{_SAID})\b"),
    mark("asks for different views",
         r"\b(?:different|differing|contrasting|conflicting|competing|diverse|various|differ|disagree|divided|split)\b"),
    mark("asks for a figure or a date",
         r"^(?:when|where|how (?:many|much|long|far|old|tall|high|deep|wide|big|large|heavy|fast))\b|"
         r"\b(?:in|since|during|for|of|by) (?:1[5-9]|20)\d\d\b|\bwhat (?:year|date|percentage|number|amount)\b"),
    mark("asks for one thing",
         r"^(?:who|whom|whose) (?:is|was|were|are|has|had|will)?\b|^(?:what|which) (?:is|was) the (?:\w+ ){1,3}of\b|"
         r"^(?:what|which) \w+ (?:is|was|has|does|did)\b|^the \w+"),
    mark("asks which has the most or the least of something",
         r"\b(?:highest|lowest|largest|smallest|longest|shortest|oldest|youngest|tallest|heaviest|cheapest|fewest|"
         r"fastest|slowest|earliest|latest|deepest|widest|most expensive|(?:the )?most \w+s?$)\b"),
    mark("asks how something is done", r"^how (?:do|can|should|must|would) (?:i|you|we|one)\b|"
         r"\b(?:step[- ]by[- ]step|procedure|instructions?)\b"),
    mark("holds figures",
         r"\d[\d,.]{3,}|\b(?:per|totals?|fewer|the (?:two|three|four|five|six))\b"),
    mark("asks about what it names", r"[\"“”«]|\b[Tt]he (?:\w+ )?(?:report|manual|memo|contract|letter|article|"
         r"handbook|guide|agreement|policy|speech|novel|film|book|interview|episode|ruling|judg(?:e)?ment|survey)\b"
         r"(?! ?(?:s\b|in this|of the collection|structure|host))", ignore_case=False),
)  # fmt: skip
