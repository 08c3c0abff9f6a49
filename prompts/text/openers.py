"""English words that often begin a sentence, with the capital that is owed to the place, and name nothing."""

from prompts.text.words import STOPWORDS

OPENERS = STOPWORDS | frozenset(
    """
    according additionally after afterwards ago almost already although always among another anyone around
    besides chapter come currently despite earlier early eventually every everyone finally first following
    former formerly get given go good great hence however hush indeed instead introduction keep last later
    least less like likewise many meanwhile moreover much near nearly never nevertheless new next nobody
    nothing note oh old one open others otherwise overview perhaps please previously recently second see
    several similarly since somebody someone sometimes soon step still summary table therefore third three
    today together two unlike usually various well whose without yes ah why aye ay ha hallo hello o ii iii iv
    pray bah pooh eh nay hurrah whoop dear mine yours everybody anybody something anything everything
    alas appendix behold contents except preface hither lo thee thence thither thou thy unless whence wherefore
    whereat whereupon ye
    """.split()
)

# Words between an open request and its name that bring in nothing new.
REQUEST_WORDS = frozenset(
    """
    about regarding of the a an on in for to and what how who which is are was were it its works work does do
    tell me more please give share provide could would can you us i would like d help main general important
    detailed comprehensive broad brief significant key specific full complete background information details detail
    description overview introduction summary account characteristics features feature concept concepts phenomenon
    describe explain summarise summarize present introduce know learn everything all anything something constitutes
    explaining explained author scholar writer researcher paper book article publisher company person film place thing
    series topic idea find out now there
    """.split()
)
