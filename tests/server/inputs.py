"""What is each step asked, where only the form of the exchange matters?"""

PASSAGE = "Ada Lovelace met Charles Babbage in London."
INPUTS: dict[str, dict[str, object]] = {
    "extract": {"title": "T", "passage": PASSAGE, "kinds": ["person"]},
    "summarize": {"name": "Ada", "statements": ["Ada is here."]},
    "report": {"entities": ["Ada: is here"], "statements": ["[1] Ada is here."]},
    "rewrite": {"question": "Where?", "history": []},
    "filter": {"question": "Where?", "hypothesis": "-", "passages": ["[0] Here."]},
    "route": {"question": "Where?", "core_content": []},
    "structurize": {"question": "?", "structure": "table", "title": "T", "sentences": ["[1] It is 4 m."]},
    "decompose": {"question": "Where?", "knowledge": []},
    "answer": {"question": "Where is Ada Lovelace?", "found": [], "evidence": [f"[1] T: {PASSAGE}"]},
}
