"""What each step is asked where only the form of the exchange matters."""

PASSAGE = "Ada Lovelace met Charles Babbage in London."
INPUTS: dict[str, dict[str, object]] = {
    "extract": {"title": "T", "passage": PASSAGE, "kinds": ["person"]},
    "glean": {"title": "T", "passage": PASSAGE, "kinds": ["person"], "known": ["Ada Lovelace"]},
    "resolve": {"pairs": ["[0] Ada Lovelace (person) | A. Lovelace (person)", "[1] Ada (person) | Adam (person)"]},
    "summarize": {"name": "Ada", "statements": ["Ada is here."]},
    "relate": {"relations": ["[0] Ada -[met]-> Babbage\n- Ada met Babbage in London.\n- They met."]},
    "report": {"entities": ["Ada: is here"], "statements": ["[1] Ada is here."]},
    "rewrite": {"question": "Where?", "history": []},
    "keywords": {"question": "Where was Ada Lovelace born?"},
    "filter": {"question": "Where?", "hypothesis": "-", "passages": "[1] T: Here."},
    "choose": {"question": "Where?", "documents": ["Orla Bridge"]},
    "route": {"question": "Where?", "core_content": []},
    "structurize": {"question": "?", "structure": "table", "title": "T", "sentences": "[1] It is 4 m."},
    "decompose": {"question": "Where?", "knowledge": []},
    "tune": {"sample": [f"T: {PASSAGE}"]},
    "plan": {
        "question": "Where?",
        "names": ["Ada Lovelace"],
        "unknown": [],
        "around": ["Ada Lovelace -[born in]->"],
        "relations": ["born in"],
    },
    "plan_table": {
        "question": "Which port has the most cranes?",
        "tables": "[1] ports (2 rows)\n- port: Hask\n- cranes: 4; 6",
    },
    "rate": {"question": "Where is Ada Lovelace?", "reports": ["[0] T: Ada Lovelace was here."]},
    "partial": {"question": "Where is Ada Lovelace?", "reports": [f"T: about it\n[1] {PASSAGE}"]},
    "explore": {"question": "Where is Ada Lovelace?", "focus": "London", "reports": [f"T\n[1] {PASSAGE}"]},
    "hypothesize": {"question": "Where is Ada Lovelace?"},
    "direct": {"question": "Where is Ada Lovelace?"},
    "answer": {"question": "Where is Ada Lovelace?", "response": "", "notes": "", "evidence": f"[1] T: {PASSAGE}"},
    "reduce": {
        "question": "Where?",
        "response": "",
        "notes": "(80) She was in London. [1]",
        "evidence": f"[1] T: {PASSAGE}",
    },
}
