"""Which wordings of an English question speak for a structure?

The kinds of task are StructRAG's (section 2.2): statistics and comparison, long chains, planning and how-to,
summaries, single hop. Function words, verbs and general nouns only; nothing about any domain.
"""

from prompts.routing.english_words import AIMS, COMPARED, KIN, LIMIT, MOST, PROSE, SPEAK, SPEAKERS
from prompts.routing.signs import Sign, sign

TABLE = (
    sign("table", 2.2, "asks whether figures rose or fell",
         r"\b(?:up|risen|rise|increas\w+|grown?|more|higher) or (?:down|fallen|fall|decreas\w+|shrunk|less|fewer|"
         r"lower)\b"),
    sign("table", 2.2, "asks which has the most or the least", rf"\b(?:which|what|who|whose|where)\b.*\b{MOST}\b"),
    sign("table", 2.6, "asks for a ranking",
         r"\b(?:rank(?:s|ed|ing)?|(?:put|place)\b.*\bin (?:descending |ascending |the )?order\b|(?:best|highest|"
         r"largest|lowest|smallest) first|(?:order|sort|arrange|list)\b.*\b(?:by|from (?:the )?\w+(?:st)? to)\b)|"
         r"\b(?:de|a)scending\b|"
         rf"\btop (?:\d+|two|three|four|five|ten)\b|\bfrom {MOST} to {MOST}\b"),
    sign("table", 1.1, "asks for a sum or a share",
         r"\b(?:totals?|percent(?:age)?s?|shares? of|proportions?|ratios?)\b"),
    sign("table", 2.2, "asks for figures to be added up or set in relation",
         r"\b(?:averages?|mean|median|sum of|combined|altogether|in all\?|totals? .*\b(?:all|two|three|four|five|"
         r"both|each)\b|percentage of (?:the|all)|"
         r"shares? of|standard deviation|difference in|gap between|cumulative|per capita|together|add(?:ed|s)? up|"
         r"overall figure|aggregate|quot(?:a|ient)|margin)\b"),
    sign("table", 2.4, "counts those that meet a condition",
         rf"\bhow many (?:of (?:the|these|them|those)\b|.*\b{LIMIT}\b|.*\b(?:each|every|per)\b)"),
    sign("table", 1.8, "compares figures", r"\b(?:compar(?:e|es|ed|ing|isons?)|versus|vs\.?|side by side|benchmark)\b"),
    sign("table", 1.9, "asks which of several has more or less",
         rf"\bwhich\b.*\b{COMPARED}\W*$|\b{COMPARED}\b.*\bthan\b|\bor\b[^?]*\b{COMPARED}\b|"
         rf"\b{COMPARED}\b[^?]*\bor\b|\b(?:or|and)\b[^?]*\bwhich\b[^?]*\b{COMPARED}\b"),
    sign("table", 1.6, "asks which of several has more or less",
         r"\b(?:which|who)\b.*\b(?:fewer|less|more)\b(?! about)"),
    sign("table", 2.4, "asks by how much figures differ",
         r"\bby (?:what|which|how (?:much|many))\b|\bhow (?:much|many) (?:more|less|fewer|higher|lower|larger|"
         r"longer)\b|\bdifference (?:in|between)\b.*\b(?:numbers?|figures?|prices?|costs?|rates?|years?|size|length|"
         r"revenues?)\b"),
    sign("table", 1.9, "asks how figures changed",
         r"\b(?:gr[eo]w(?:th|n|s)?|increase[sd]?|decrease[sd]?|rose|improved?|worsen(?:ed)?|rises?|risen|falls?|fell|"
         r"fallen|drop(?:s|ped)?|shr[aiu]nk|climb\w*|halved|recover\w*|decline[sd]?|doubled|trends? in|"
         r"chang(?:e|es|ed)|develop(?:ed)?|evolve[ds]?|var(?:y|ied)|fluctuat\w+|progress(?:ed)?)\b.*\b(?:from|"
         r"between|over|since|through(?:out)?|year|quarter|month|week|season|decade|\d{4})\b"),
    sign("table", 1.7, "asks how figures changed",
         r"\bhow (?:did|has|have|do|does)\b.*\b(?:numbers?|shares?|rates?|prices?|amounts?|figures?|costs?|sales|"
         r"revenues?|incomes?|population|temperatures?)\b"
         r".*\b(?:develop\w*|chang\w+|gr[eo]w\w*|evolv\w+|vary|varied|mov(?:e|ed))\b"),
    sign("table", 1.7, "asks for those above or below a limit",
         rf"\b(?:which|list|name|find|count|who|what)\b.*\b{LIMIT}\s+(?:\S+ ){{0,2}}?[\d$€£]|"
         rf"\b(?:which|list|name|find|count)\b.*\b{LIMIT} (?:an?|one|two|three|four|five|six|seven|eight|nine|ten|"
         rf"half|"
         r"twenty|thirty|fifty|a hundred|average|the average)\b"),
    sign("table", 2.0, "asks the same of each",
         r"\b(?:for|of|in|by|at|from|does|do|did|has|have|had) (?:each|every)\b|\b(?:for|of|by) all (?:the |"
         r"of the )?(?:two|three|four|five|six|\w+s)\b|"
         r"\b(?:each|every) of the\b|\brespective(?:ly)?\b|\bper (?:year|month|country|region|company|capita|"
         r"quarter)\b"),
    sign("table", 3.6, "groups by figures",
         rf"\b(?:categori[sz]\w*|classif\w+|group\w*|divide\w*|sort\w*|band\w*|bucket\w*)\b.*\b{LIMIT} \S{{0,2}}\d"),
    sign("table", 2.0, "asks for statistics",
         r"\b(?:statistics?|statistical|tabulate|table of|figures for|in tabular form|as a table|spreadsheet|"
         r"data for|breakdown)\b"),
    sign("table", 0.9, "asks for a quantity",
         r"\b(?:revenues?|incomes?|profits?|sales|turnovers?|expenditures?|costs?|prices?|salar(?:y|ies)|populations?|"
         r"scores?|rates?|budgets?|emissions?|capacit(?:y|ies)|numbers? of|earnings|assets|debts?|yields?|margins?|"
         r"mortality|output|consumption|throughput)\b.*\b(?:and|or|between|from|across|compared|than|among)\b"),
)  # fmt: skip

GRAPH = (
    sign("graph", 1.7, "asks where something goes or comes from",
         r"\b(?:flow(?:s|ed)?|originat\w+|feeds? into|downstream|upstream|trained by|taught by|raised by|"
         r"recruited by|inherited from)\b"),
    sign("graph", 2.0, "asks what follows from a change",
         r"\b(?:would|will|could|might|may)\b.*\b(?:if|were|was|without)\b.*\b(?:removed?|fail(?:s|ed)?|vanish\w*|"
         r"disappear\w*|stop(?:s|ped)?|clos\w+|"
         r"lost|gone|die[sd]?|break(?:s)?|broke|bankrupt|collaps\w+|shut|unavailable|deleted?|resign\w*|withdr\w+)\b|"
         r"\bif\b.*\b(?:affect\w*|suffer\w*|impact\w*|lose|break)\b|\bwhat else\b|\baffected (?:by|if|when)\b"),
    sign("graph", 1.9, "asks how something got from one to the other",
         r"\bhow (?:did|could|does|can|might|would|has|have|had) .*\b(?:come|came|reach\w*|end(?:ed)? up|arriv\w+|"
         r"affect\w*|spread|pass(?:ed|es)?|learn\w* (?:of|about)|hear\w* (?:of|about)|find out|found out|get wind|"
         r"find its way|"
         r"fall into|fell into|get (?:from|into|to|hold)|got|wound up|made its way|have (?:got|gotten|caught|known|"
         r"learn\w*|heard))\b|\bto whom\b|"
         r"\bfrom whom\b|\bwhose hands\b|\bbefore (?:it|he|she|they) (?:reached|got|came)\b|\bwhom did\b.*\b(?:tell|"
         r"pass|hand|sell|give)\b|\buntil it reached\b|\bchanged hands\b|\b(?:hand|pass)ed (?:on|down|over)\b"),
    sign("graph", 2.6, "asks for a chain of relations",
         r"\b(?:chains?|trac(?:e|ed|ing)|pathways?|paths?|lineage|kinship|kinsh?m[ae]n|relatives?|bloodline|"
         r"money trail|"
         r"follow the|descen(?:d|t|dants?)\w*|ancest\w+|genealog\w+|"
         r"intermediar\w+|go-betweens?|indirect(?:ly)?|degrees of separation|network of|web of|dependenc(?:y|ies))\b|"
         r"\b(?:through|via|by way of|by) (?:which|whom|what|whose)\b(?! (?:year|date|percent\w*|margin|amount|"
         r"factor))|\bsequence of (?:events|owners|deals|people)\b"),
    sign("graph", 2.2, "asks what rests on what",
         r"\b(?:cit(?:es?|ed|ing|ations?)|builds? (?:up)?on|built (?:up)?on|rests? on|deriv(?:es?|ed) from|stems? from|"
         r"(?:was|were|is|are) influenced by|influence[sd]? (?:the|by)|extends?|inspired)\b"),
    sign("graph", 1.7, "goes from one relation to the next",
         r"(?:'s|’s) (?:\w+ ?){1,3}(?:'s|’s)|\b(?!(?:number|name|one|list|date|year) of)\w+ of (?:the |"
         r"an? )?(?:\w+ ){0,1}"
         r"(?!(?:number|name|one|list|date|year) of)\w+ of\b|\bof \S+ ?(?:'s|’s) \w+"),
    sign("graph", 2.4, "asks for what two things have in common",
         r"\b(?:common|mutual|shared) (?:\w+ )?(?:contacts?|acquaintances?|friends?|ancestors?|owners?|suppliers?|"
         r"relatives?|shareholders?|investors?|co-?authors?|"
         r"neighbou?rs?|enem(?:y|ies)|teachers?|directors?|members?|links?|partners?|customers?|origins?|sources?|"
         r"denominator)\b"),
    sign("graph", 1.4, "asks how one thing acts on another",
         r"\bthe same \w+ (?:as|that)\b|\b(?:entangled|intertwined|interwoven|stood between|stands? behind|"
         r"is behind)\b|\bhow (?:.*\b(?:would|could|might|can|will)|do|does|did|has|have|is|are) .*\b(?:affect\w*|"
         r"influenc\w+|impact\w*|contribut\w+|shap(?:e|ed)|depend\w*|interact\w*)\b|"
         r"\bwhich\b.*\bdepends?\b|\bdepends? on (?:which|what)\b|\bwhat (?:effect|influence|impact|role)\b.*\b(?:on|"
         r"in)\b|\balso (?:own|sit|work|stud|suppl|serv|chair|fund|act|direct)\w*"),
    sign("graph", 0.8, "asks what two things share", r"\bboth\b.*\band\b|\bshared?\b.*\b(?:between|by)\b.*\band\b"),
    sign("graph", 2.0, "asks what leads to what",
         r"\b(?:leads? (?:up |back )?to|led (?:up |back )?to|ends? in|ended in|results? in|resulted in|trigger(?:s|"
         r"ed)|bring(?:s)? about|brought about|knock-on|cascad\w+|"
         r"ripple|domino|cause[sd]? .* to|set off|consequences? of|eventual(?:ly)?|ultimately|in turn|"
         r"what happens .* (?:chain|then|next))\b"),
    sign("graph", 2.4, "asks how things are tied",
         r"\b(?:ti(?:e|es|ed)|links?|linked|connect(?:s|ed|ions?)?|relat(?:es?|ed|ionships?)|tied|bond|associat(?:ed|"
         r"ions?))\b"
         r".*\b(?:to|with|between|and)\b(?!.*\b(?:printer|network|cable|device|server|router|account)\b)|"
         r"\b(?:connected|related|linked|associated|tied)(?: (?:to|with) each other)?\W*$|\b(?:come|came|get|"
         r"got) to know\b|\bknow each other\b|\bhave to do with\b|\bin common\b|\bacquaint\w+"),
    sign("graph", 2.2, "goes from one relation to the next",
         rf"\b{KIN}\b(?:'s|’s)?(?: (?:of|to|for|who|whose|that|which|the|a|an|his|her|was|is|were|are|\S+ed|by|in|"
         rf"\S+(?:'s|’s)?)){{0,6}}? \b{KIN}\b"),
    sign("graph", 1.7, "asks for something by what is told of something else",
         rf"\b{KIN} of (?:the|an?) [^?,]*?\b(?:that|which|who|whose|where|based on|made by|written by|founded by|"
         rf"owned by|"
         r"designed by|built by|led by|taught by|named after)\b|"
         r"\b(?:person|man|woman|one|company|firm|people|organi[sz]ation|city|country|town|institute|school|place|"
         r"film|book) "
         r"(?:who|whom|that|which|where|whose|in which|to which)\b"),
    sign("graph", 1.2, "describes one thing by another",
         r"^(?:(?:in|into|to|from|by|under|for|at|on|of|with) )?(?:who|whom|whose|what|which|where|when)\b.*\b(?:the|"
         r"an?) (?:\w+ ){1,3}?"
         r"(?:that|which|who|whom|whose|where|she|he|they|it)\b(?! (?:is|are|was|were) (?:the )?\w+\?)"),
    sign("graph", 1.0, "asks where something belongs",
         r"\b(?:belongs? to|report(?:s|ed)? to|answer(?:s|able)? to|subordinate|falls? under|under which|part of|"
         r"owned by|controlled by|supervis\w+|"
         r"oversee\w*|succeed\w*|inherit\w*|descend\w*|acquired by|merged|collaborat\w+|introduced|recommended|hired|"
         r"appointed|married|taught|stud(?:y|ied) (?:under|with)|worked (?:for|with|under))\b"),
    sign("graph", 1.2, "asks of someone by a relation", rf"(?:'s|’s) {KIN}\b(?:'s|’s)| whose {KIN}\b"),
)  # fmt: skip

ALGORITHM = (
    sign("algorithm", 1.8, "asks how something is done",
         r"\bhow (?:is|are) (?!.*\b(?:connect|relat|link|associat|call|view|perceiv|describ|portray|receiv|judg|"
         r"regard|seen|defin|measur|distribut|compos|divid|organi[sz]|structur|fund|financ|own|affect|influenc)\w*)"
         r"(?:an? |the )?[\w'’ -]{2,60}? (?:\w+ed|\w+en|made|built|sent|cut|put|set|kept|held|laid|hung|sewn|spun)\b"),
    sign("algorithm", 1.6, "asks how someone does something",
         r"\bhow does (?:an?|one|someone|somebody) |\b(?:show|demonstrate|teach me) how (?:an?|one|you)\b|"
         r"\bwhat can (?:i|we|one|you) do\b|\bwhat needs? \w+ing\b"),
    sign("algorithm", 2.8, "asks how something is done",
         r"\bhow (?:do(?! the\b)|can|should|would|must|shall|could(?!\b.*\bhave\b)|might(?!\b.*\bhave\b)) (?:i|we|"
         r"you|one|an?|the|someone|somebody|they|people|users?|"
         r"staff|new|it)\b(?!.*\b(?:compare|relate|differ|describe|view|see|argue|explain|portray|characteri[sz]e|"
         r"think|feel)\b|(?:the )?" + SPEAKERS + r"\b)|"
         r"\bhow (?:is|are|was|were) (?:an? |the |\w+ ){1,4}?(?:\w+ ){0,3}(?:made|done|set up|installed|prepared|"
         r"configured|carried out|performed|replaced|reset|\w+ed step)\b"),
    sign("algorithm", 1.2, "asks how something is done", r"\bhow do(?:es)? (?!" + SPEAKERS + r")\w+ \w+"),
    sign("algorithm", 2.2, "asks for the right way",
         r"\bhow does one\b|\b(?:best|right|correct|proper|recommended|usual|safe) (?:way|method|procedure)\b|"
         r"\btips (?:for|on)\b"),
    sign("algorithm", 0.9, "tells of a situation of its own",
         r"^(?:i|i'm|i've|we|my|our|a (?:colleague|friend|customer|visitor|patient))\b"),
    sign("algorithm", 3.0, "asks how to do something",
         r"\b(?:how|way|ways|what it takes|what is needed|need(?:ed)?) to\b"),
    sign("algorithm", 2.6, "asks for the steps",
         r"(?<!how many )\b(?:steps?|procedures?|instructions?|walk me through|walkthrough|talk me through|"
         r"take me through|show me how|the process of|process for|how-to|step[- ]by[- ]step|guide me|"
         r"workflow|recipe for|checklist|to-do list|protocol for|method for)\b(?!.*\bcalled\b)"),
    sign("algorithm", 2.4, "asks for a plan",
         r"(?:^|\. |, |; |: )(?:please )?(?:help (?:me|us) )?(?:plan|draw up|draft|work out|devise|lay out|set up|"
         r"prepare|design|suggest|develop|recommend|propose|create|come up with|build|write|give (?:me|us)|"
         r"schedule|organi[sz]e|put together|make)\b.*\b(?:plans?|schedules?|trips?|tours?|itinerar(?:y|ies)|days?|"
         r"weeks?|routes?|"
         r"programme|program|timeline|rollout|migration|move|strategy|visits?|training|diet|regime|menu|curriculum|"
         r"syllabus|agenda|hike|weekend|holiday|workout)\b|"
         r"\b(?:itinerary|roadmap|action plan|timetable for|plan for \w+ing|plan (?:a|an|the|my|our) )\b"),
    sign("algorithm", 2.6, "asks for an order of actions",
         r"\b(?:in (?:what|which) (?:order|sequence)|(?:what|which) order|order of (?:work|actions|operations|steps)|"
         r"first,? and (?:what|which|then|next|who)|(?:do|done|happen) (?:first|next|then|before|after)|"
         r"what comes (?:first|next)|before (?:you|we|i|one) (?:can|may|start))\b"),
    sign("algorithm", 2.6, "asks what is to be done",
         r"\bwhat (?:do|does|must|should|shall|has|have|needs?|is|are|ought|can|actions?)\b.*\b(?:to do|do|be done|"
         r"to be done|needed to|required (?:to|for|in|if|when)|necessary (?:to|for)|required\?|actions?|precautions|"
         r"paperwork|submit\w*|be taken|proceed|react|respond|prepare|to take)\b"),
    sign("algorithm", 1.6, "asks for actions",
         r"\b(?:what|which) (?:actions?|measures|precautions|forms|documents|tools|materials|preparations|paperwork|"
         r"settings|checks|applications|commands?|stages|phases|approvals?|formalities|requirements)\b.*"
         r"\b(?:required|needed|necessary|taken|take|need|must|have to|should|used?|filed|submitted)\b|\b(?:get|set|"
         r"bring|put) \w+ (?:back|up|running|ready)\b"),
    sign("algorithm", 1.4, "names duties and their conditions",
         r"\b(?:have to|has to|must|needs? to|should|required to|supposed to)\b.*\b(?:if|when|once|before|after|unless|"
         r"in case|until|first|then|in order to|so that)\b|\b(?:if|when|once|before|after|in case)\b.*\b(?:have to|"
         r"has to|must|needs? to|should|required to|supposed to)\b"),
)  # fmt: skip

CATALOGUE = (
    sign("catalogue", 3.0, "asks for a summary",
         r"\b(?:summar(?:y|ies|i[sz]e[sd]?|i[sz]ing)|sum up|overviews?|outlines?|recap|condense|digest|synopsis|"
         r"synthesi[sz]e|gist|"
         r"abridge|brief me|bird'?s[- ]eye|survey the|take stock|abstract of|key takeaways?|in a nutshell|catalogue|"
         r"inventory of)\b"),
    sign("catalogue", 2.6, "asks for the main points",
         rf"\b(?:main|key|major|central|principal|chief|core|most important|common|shared|recurring|general|broad|"
         rf"overall|essential|big|dominant|biggest)\b (?:\w+ )?{AIMS}\b"),
    sign("catalogue", 1.8, "asks what texts set out",
         r"\b(?:goals|priorities|aims|objectives|targets|visions?|proposals|plans|principles|criteria|"
         r"recommendations|obligations|rights|experiences|"
         r"impressions|memories|lessons|developments|events|arguments)\b.*\b(?:set out|lay out|laid out|lay down|"
         r"contain|pursue|propose[sd]?|name|report\w*|"
         r"formulate\w*|list|are there|recount\w*|tell|stated?|put forward|included?|outlined|made)\b|"
         r"\bstate of (?:the art|research|knowledge)\b|\bwhat (?:can|do) (?:we|you|readers?) learn\b"),
    sign("catalogue", 1.9, "asks which topics there are",
         r"\b(?:themes?|topics?|subjects?|aspects?|motifs?|kinds? of|types? of|categories|issues?|problems?|"
         r"challenges|concerns)\b.*"
         r"\b(?:cover(?:ed|s)?|discuss(?:ed|es)?|raised?|address(?:ed|es)?|treated|come up|came up|mentioned|"
         r"appears?|emerges?|"
         r"recur|coming back|dealt with|deal with|runs? through|described|identified|reported|there)\b"),
    sign("catalogue", 2.2, "weighs for and against",
         r"\b(?:advantages?|benefits?|strengths?|pros|merits|upsides?|opportunities)\b.*\b(?:drawbacks?|"
         r"disadvantages?|weaknesses|"
         r"cons|downsides?|limits|limitations|risks|threats)\b|\bprais\w+\b.*\bcomplain|\bfor and against\b|"
         r"\b(?:praise|criticise|criticize|complain\w* about|like and dislike|(?:un)?happy (?:with|about)|good and bad|"
         r"well and (?:badly|what)|went (?:well|wrong|badly)|satisf\w+)\b"),
    sign("catalogue", 1.7, "asks for positions in prose", rf"\b{PROSE}\b"),
    sign("catalogue", 2.0, "asks where minds meet or part",
         r"\b(?:part ways|common ground|disagree\w*|agree|in agreement|at odds|diverge|consensus|controvers\w+|"
         r"disput\w+|rival|school of thought|"
         r"stand on|think (?:of|about)|make of|debate[sd]?)\b|\bhow (?:was|were|is|are|has|have) .*\b(?:received|"
         r"perceived|judged|seen|viewed|"
         r"reviewed|regarded|portrayed|depicted|described|treated|discussed|interpreted)\b|\breception of\b"),
    sign("catalogue", 2.2, "compares positions in prose",
         rf"\b(?:compare|contrast|differ(?:s|ed|ences?)?|agree|disagree|diverge|reconcile|comparison)\b.*\b{PROSE}\b|"
         rf"\b{PROSE}\b.*\b(?:compare|contrast|differ(?:s|ed|ences?)?|agree|disagree|diverge)\b"),
    sign("catalogue", 2.2, "asks for a grouping",
         r"\b(?:classif\w+|categori[sz]e|group(?:ed)?|sort(?:ed)?|organi[sz]ed?|arranged?|divided?|"
         r"ordered)\b.*\b(?:into|by (?:theme|topic|kind|type|"
         r"subject|area)|groups?|categories|under headings|according to)\b|\b(?:taxonomy|typology|structured list)\b"),
    sign("catalogue", 1.9, "asks what many say", rf"\b{SPEAKERS}\b.*\b{SPEAK}\b|\b{SPEAK}\b.*\b{SPEAKERS}\b"),
    sign("catalogue", 1.2, "asks an open question",
         r"^(?:in |on |of |according to [^,]+, )?(?:what|which)(?: are the| were the| other|"
         r" \w+)? (?:\w+ )?(?:strategies|barriers|insights|reasons|"
         r"factors|lessons|approaches|changes|effects|solutions|measures|examples|stories|anecdotes|qualities|trends|"
         r"differences|"
         r"features|ways|benefits|risks|opportunities|impacts?|implications|motives|criticisms|principles|values|"
         r"hopes|fears|"
         r"explanations|suggestions|expectations|tensions|similarities|patterns|questions|\w+(?:ments|tions|sions|"
         r"ances|ences|isms|ships)|commitments?|promises|duties|rights)\b"),
    sign("catalogue", 0.7, "asks how often something comes up",
         r"\b(?:frequently|often|typically|commonly|consistently|repeatedly)\b"),
    sign("catalogue", 1.6, "asks what was said on a subject",
         r"\bwhat (?:has|have|did|do|does) .*\b(?:promised?|sa(?:id|y)|announced?|declared?|pledged?|argued?|written|"
         r"wrote) "
         r"(?:on|about|regarding|concerning|of)\b|\b(?:overall|general) (?:verdict|impression|mood|tone|picture|"
         r"attitude|assessment|feeling)"),
    sign("catalogue", 0.7, "asks what a text says", r"\bwhat (?:does|did) .*\b(?:say|tell|report|state)\b"),
    sign("catalogue", 1.6, "asks what texts say",
         r"\bwhat (?:do|is|are|was|were|have|has) (?:the |these |those |all |both |\w+ ){0,4}?(?:\w+ )?(?:say|said|"
         r"think|argue|"
         r"tell|report|suggest|discuss|recommend|propose|conclude|emphasi[sz]e|praise|feel|believe|deal with|about|"
         r"have in store)\b|"
         r"\bhow (?:do|does|did) .*\b(?:see|view|describe|portray|characteri[sz]e|interpret|judge|explain|depict|"
         r"think|regard|feel)\b"),
    sign("catalogue", 1.8, "goes through the texts one by one",
         r"\b(\w{4,}) by \1\b(?<!step by step)(?<!side by side)|\b(?:across|throughout) (?:the|all|"
         r"these)\b.*\b(?:documents?|texts?|chapters?|essays?|reports?|interviews?)\b"),
    sign("catalogue", 1.2, "asks to be told about a subject",
         r"\b(?:tell me (?:about|what)|describe|introduce|what is known about|explain (?:the|what|why)|account of|"
         r"background (?:of|to|on)|details (?:about|on|of)|"
         r"information (?:about|on)|introduction (?:to|about|of)|more about|characteristics|everything|"
         r"is (?:all )?about|structured|in broad strokes|history of how|executive)\b"
         r"(?!.*\bhow to\b)"),
)  # fmt: skip

CHUNK = (
    sign("chunk", 1.0, "asks for one fact",
         r"^(?:\w+ \w+,? |\w+,? )?(?:when|where|who|whose|whom|(?:in|since|on) (?:what|which) (?:year|date|day))\b"),
    sign("chunk", 0.7, "asks for one thing by its place",
         r"^(?:from|at|on|in|under|until|for|to) (?:which|what|when|whose) \w+ (?:is|was|are|were|does|did|do|must|"
         r"may)\b"),
    sign("chunk", 0.9, "asks for one figure",
         r"\b(?:how (?:long|high|old|deep|far|much|many|tall|wide|big|large|heavy|fast|often|hot|cold|thick)|"
         r"what (?:year|date|time|day|temperature|size|voltage|speed)|at what|on what|to what)\b"),
    sign("chunk", 1.8, "asks what a word means",
         r"\b(?:stands? for|abbreviat\w+|acronym|defin(?:e|ed|ition)s?|meant by|meaning of|is called|called)\b"),
    sign("chunk", 2.0, "asks which text says something",
         r"\b(?:which|what) (?:\w+ ){0,4}?(?:document|article|polic(?:y|ies)|report|paper|section|chapter|page|"
         r"letter|text|clause|essay|file|"
         r"minutes|file|note|guide|manual|record|of the \w+)s? (?:\w+ )?(?:mention|describe|explain|contain|discuss|"
         r"state|refer|say|deal|cover|introduce|provide|talk)s?\b"),
    sign("chunk", 0.9, "asks for one thing by its name",
         r"^what(?: is| was|'s) (?:the|its|his|her) (?:\w+ ){1,4}(?:of|for|in|on|at) (?:the )?\w+(?: \S+){0,4}\?*$"),
    sign("chunk", 0.9, "asks whether something is so", r"^(?:is|was|are|were|does|did|do|has|have|had|can|may|will)\b"),
)  # fmt: skip

ENGLISH: tuple[Sign, ...] = (*TABLE, *GRAPH, *ALGORITHM, *CATALOGUE, *CHUNK)
