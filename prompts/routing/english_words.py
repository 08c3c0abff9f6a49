"""Which English words compare, limit, relate, speak and sum up? The parts that the signs of `english` are made of."""

COMPARED = (
    r"(?:more|less|fewer|larger|smaller|bigger|greater|higher|lower|longer|shorter|older|younger|heavier|lighter|"
    r"faster|slower|cheaper|taller|deeper|wider|earlier|later|closer|better|worse|dearer|richer|stronger|warmer|colder)"
)
# A capital is a name's ("the prize for Best Film").
MOST = (
    r"(?-i:most(?! (?:frequent|often|common|important|likely|recent))|least|fewest|highest|lowest|largest|smallest|"
    r"longest|shortest|biggest|greatest|oldest|youngest|tallest|"
    r"deepest|widest|heaviest|lightest|earliest|latest|fastest|slowest|cheapest|dearest|best|worst|strongest|weakest|"
    r"steepest|warmest|coldest|busiest|top|newest|closest|nearest|"
    r"(?!(?:inter|for|requ|harv|prot|inv|cont|sugg|hon|dig|mod|earn|manif|conqu|behe|temp|arr|gu|pri|unr)est)"
    r"[a-z]{3,}est)"
)
LIMIT = (
    r"(?:(?:more|less|fewer|greater|higher|lower|larger|smaller|shorter|longer|older|younger|later|earlier) than|over|"
    r"above|below|under|at least|at most|exceed\w*|surpass\w*|up to|no more than|between \S+ and)"
)
PROSE = (
    r"(?:views?|positions?|attitudes?|stances?|opinions?|arguments?|interpretations?|perspectives?|viewpoints?|"
    r"standpoints?|criticisms?|reactions?|objections?|beliefs?|theories|conceptions?|understandings?|portrayals?|"
    r"treatments? of|takes? on|accounts? of|tones?|philosoph\w+|ideas?|reasoning)"
)
KIN = (
    r"(?:managers?|supervisors?|bosses|boss|superiors?|mentors?|teachers?|pupils?|students?|advis[eo]rs?|"
    r"(?:grand|step)?(?:mother|father|son|daughter|parent|child)(?:-in-law)?|(?:brother|sister)(?:-in-law)?|"
    r"husband|wife|spouse|cousin|uncle|aunt|nephew|niece|heirs?|successors?|predecessors?|founders?|owners?|"
    r"parent company|subsidiar(?:y|ies)|shareholders?|suppliers?|directors?|authors?|composers?|designers?|inventors?|"
    r"apprentices?|disciples?|employers?|colleagues?|partners?|assistants?|architects?)"
)
# Those whose words a collection holds, and what they do with them.
SPEAKERS = (
    r"(?:guests|speakers|authors|writers|interviewees|respondents|participants|critics|reviewers|leaders|experts|"
    r"witnesses|contributors|scholars|members|residents|patients|readers|users|customers|employees|teachers|delegates|"
    r"commentators|travell?ers|tourists|visitors|passengers|parents|drivers|clients|citizens|villagers|neighbours|"
    r"neighbors|fans|players|masters|philosophers|historians|researchers|letters|documents|texts|articles|essays|"
    r"papers|reports|chapters|"
    r"interviews|episodes|transcripts|reviews|minutes|notes|surveys|studies|sources|stories|speeches|conversations|"
    r"discussions|guidelines|statements|submissions|editorials)"
)
SPEAK = (
    r"(?:discuss\w*|mention\w*|shar(?:e|ed|ing)|talk\w* about|describ\w+|suggest\w*|express\w*|predict\w*|highlight\w*|"
    r"emphasi[sz]\w+|envision\w*|approach\w*|rais(?:e|ed)|broach\w*|propos\w+|identif\w+|reflect\w*|portray\w*|"
    r"featur\w+|address\w*|argue\w*|believe\w*|perceive\w*|recommend\w*|offer\w*|say|see|think|feel|make of|cover|"
    r"deal with|warn|fear|hope|want|wish|voice[sd]?|f(?:i|ou)nd (?:helpful|useful|difficult|good|bad|hard|easy|"
    r"confusing)|complain\w*|expect|agree|disagree|differ|respond|react|receiv\w+|judge|regard|interpret\w*|praise|"
    r"assess|treat)"
)
AIMS = (
    r"(?:points?|ideas?|arguments?|findings|themes?|topics?|conclusions?|takeaways?|messages?|lessons?|concerns?|"
    r"recommendations?|issues?|claims?|problems?|challenges?|motifs?|results|insights?|aspects?|developments?|"
    r"subjects?|strands?|complaints?|worries|wishes|criticisms?|objections?|decisions?|achievements?|proposals?|"
    r"questions)"
)
