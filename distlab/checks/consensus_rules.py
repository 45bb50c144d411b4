"""The rules of a Raft, asked one by one, and the hints for each.

A row is a state, a rule, what is right, and a hint's name if it is not the rule's:

    term=3, log='112'    may_vote(1, RequestVote(3, 3, 2))    True

In the rule, `sent(effects)` is the message of the first Send; `new` is a new node, and
`restored(saved)` what that knows after `restore`.
"""

import random
import re

from distlab.checks import kit
from distlab.checks.kit import Hint, Wrong, called
from distlab.trace import Call

_MESSAGE = re.compile(
    r"\b(RequestVote|Vote|AppendEntries|AppendReply|Read)\(([^()]|\(\))*\)"
)


def rows_of(text):
    """Return (state, rule, right), and a hint's name in some, of each line."""
    lines = filter(None, map(str.strip, text.splitlines()))
    return [re.split(r"\s{2,}", line) for line in lines]


def follow_rows(text, make, without):
    """Compare what each rule says in its rows with what it should say."""
    rows = rows_of(text)
    said = kit.call(_answers, make, [row[:3] for row in rows], without=without)
    for (state, rule, _, *hint), (asked, right, yours) in zip(rows, said, strict=True):
        if yours != right:
            steps = asked.replace("; ", "\n    ")
            found = f"A node of five with {state}:\n    {steps}\n    expected  {right}"
            name = hint or re.findall(r"on_\w+|(?!sent)\b\w+", rule)
            raise Wrong(f"{found}\n    yours     {yours}", rule=name[0])


def _answers(make, rows):
    """Return (rule, right, answer) of each row, as text; runs in a process."""
    return [_answer(make, *row) for row in rows]


def _answer(make, state, rule, right):
    space = make.may_vote.__globals__ | {"Call": Call}
    rule, right = (
        _MESSAGE.sub(lambda found: repr(eval(found[0], space)), text)
        for text in (rule, right)
    )
    try:
        return rule, right, called(_said, make, state, rule, space)
    except Exception as error:
        if type(error) is not NotImplementedError:  # a hint knows its words
            error.args = (f"{error}. Asked: a node of five with {state}: {rule}",)
        raise


def _said(make, state, rule, space):
    node, new = (make(0, (1, 2, 3, 4)) for _ in range(2))
    node.random = random.Random(0)

    def log(terms):
        return [space["Entry"](int(term)) for term in terms]

    def restored(value):
        new.restore(value)
        return new.term, new.voted_for, "".join(str(e.term) for e in new.log)

    def sent(effects):
        sends = (effect.message for effect in effects if hasattr(effect, "message"))
        return next(sends, space["AppendReply"](None, None, -1, None))

    for name, value in eval(f"dict({state})", space).items():
        value = dict.fromkeys(node.peers, 0) | value if name == "match" else value
        setattr(node, name, log(value) if name == "log" else value)
    node.next = dict.fromkeys(node.peers, len(node.log) + 1) | node.next
    methods = {name: getattr(node, name) for name in dir(make) if name[0] != "_"}
    space |= methods | {"log": log, "restored": restored, "sent": sent, "new": new}
    *events, asked = rule.split("; ")
    for event in events:
        effects = eval(event, space)
        if event.startswith(("on_", "stand")):
            list(effects or ())
    said = eval(asked, space | vars(node) if events else space)
    return _as_text(said, asked)


def _as_text(said, asked):
    if asked.startswith("on_"):
        kinds = sorted({type(effect).__name__ for effect in said or ()})
        return " ".join(kinds) or "nothing"
    if asked.startswith(("may_", "fits")):
        return str(bool(said))
    many = type(said) in (list, tuple) and said and hasattr(said[0], "term")
    return "".join(str(entry.term) for entry in said) if many else str(said)


# fmt: off
VOTE_ROWS = """
term=1, log=''  may_vote(1, RequestVote(1, 0, 0))  True
term=3, log='112'  may_vote(1, RequestVote(3, 3, 2))  True
term=3, log='112', voted_for=1  may_vote(1, RequestVote(3, 3, 2))  True
term=3, log='112', voted_for=2  may_vote(1, RequestVote(3, 3, 2))  False
term=3, log='112', voted_for=0  may_vote(1, RequestVote(3, 3, 2))  False
term=3, log='112'  may_vote(1, RequestVote(2, 3, 2))  False
term=3, log='112'  may_vote(1, RequestVote(3, 2, 2))  False
term=3, log='112'  may_vote(1, RequestVote(3, 9, 1))  False
term=3, log='111'  may_vote(1, RequestVote(3, 2, 2))  True
term=3, log='112'  may_vote(1, RequestVote(3, 4, 2))  True
term=3, log='112'  on_request(1, RequestVote(3, 3, 2)); voted_for  1
term=3, log='113'  on_request(1, RequestVote(3, 3, 2)); voted_for  None
term=3, log='112'  on_request(1, RequestVote(3, 3, 2))  Send SetTimer
term=3, log='113'  on_request(1, RequestVote(3, 3, 2))  Send  on_request refused
term=3, log='113'  sent(on_request(1, RequestVote(3, 3, 2)))  Vote(3, False)  on_request refused
term=3, log='112'  sent(on_request(1, RequestVote(2, 3, 2)))  Vote(3, False)  on_request term
term=3, role=CANDIDATE, votes={0, 1}  on_vote(2, Vote(3, True)); role  leader
term=3, role=CANDIDATE, votes={0, 1}  on_vote(2, Vote(2, True)); role  candidate
term=3, role=CANDIDATE, votes={0, 1}  on_vote(2, Vote(3, False)); role  candidate
term=3, role=CANDIDATE, votes={0, 1}  on_vote(1, Vote(3, True)); role  candidate
term=3, role=FOLLOWER, votes={0, 1}  on_vote(2, Vote(3, True)); role  follower
term=3, role=LEADER, voted_for=0  see_term(5); role  follower
term=3, role=LEADER, voted_for=0  see_term(5); voted_for  None
term=3, role=LEADER, leader=0  see_term(5); leader  None
term=3, voted_for=2  stand(); term  4
term=3, voted_for=2  stand(); voted_for  0
term=3, votes={0, 1, 2}  stand(); votes  {0}
term=3, leader=2  stand(); leader  None
"""  # noqa: E501, one row is one line
LOG_ROWS = """
log=''  fits(0, 0)  True
log='111445566'  fits(10, 6)  False
log='1114'  fits(10, 6)  False
log='11144556666'  fits(10, 6)  True
log='111445566677'  fits(10, 6)  True
log='1114444'  fits(10, 6)  False
log='11122233333'  fits(10, 6)  False
log='1114444'  fits(5, 4)  True
log='11122233333'  fits(3, 1)  True
log='11144556666'  merged(10, log('8'))  11144556668
log='111445566677'  merged(10, log('8'))  11144556668
log='1114444'  merged(5, log('55666'))  1114455666
log='11122233333'  merged(3, log('4455666'))  1114455666
log='111'  merged(3, log('44'))  11144
log='1114455666'  merged(3, log('44'))  1114455666
log='11144556666'  merged(10, ())  11144556666
term=4, log='124', match={1: 2, 2: 2, 3: 1, 4: 1}  may_commit(2)  False
term=4, log='124', match={1: 3, 2: 2, 3: 1, 4: 1}  may_commit(3)  False
term=4, log='124', match={1: 3, 2: 3, 3: 1, 4: 1}  may_commit(3)  True
term=3, log='113'  on_append(1, AppendEntries(3, 1, 1, (), 3, 1)); commit  1  on_append commit
term=3, log='113'  on_append(1, AppendEntries(2, 1, 1, (), 1, 1)); commit  0
term=3, log='113'  on_append(1, AppendEntries(2, 1, 1, (), 1, 1))  Send
term=3, log='113'  on_append(1, AppendEntries(3, 9, 3, (), 0, 1))  Send SetTimer  on_append role
term=3, log='113'  sent(on_append(1, AppendEntries(2, 1, 1, (), 1, 7))).round  7  on_append round
term=3, log='113'  sent(on_append(1, AppendEntries(2, 1, 1, (), 1, 7)))  AppendReply(3, False, 0, 7)
term=3, log='112'  sent(on_append(1, AppendEntries(3, 2, 1, (), 0, 7))).round  7  on_append round
term=3, log='112'  sent(on_append(1, AppendEntries(3, 2, 1, (), 0, 7)))  AppendReply(3, True, 2, 7)
term=3, log='1'  sent(on_append(1, AppendEntries(3, 1, 3, (), 0, 7))).last < 1  True  on_append last
term=3, log='11111', commit=3  sent(on_append(1, AppendEntries(3, 30, 3, (), 3, 7))).last >= 3  True  on_append last
log='55', role=LEADER, match={1: 0}  on_reply(1, AppendReply(0, True, 2, 1)); next[1]  3
log='00', role=LEADER, match={1: 2, 2: 2, 3: 0}  on_reply(3, AppendReply(0, True, 2, 1)); commit  2
log='00', role=LEADER, match={1: 0, 2: 0, 3: 0}  on_reply(3, AppendReply(0, True, 2, 1)); commit  0
log='55', role=LEADER, match={1: 0}, next={1: 3}  sent(on_reply(1, AppendReply(0, False, 1, 1))).previous  1
term=5, role=LEADER, match={1: 0}  on_reply(1, AppendReply(3, True, 4, 1)); match[1]  0
term=3, role=CANDIDATE  on_append(1, AppendEntries(3, 9, 3, (), 0, 1)); role  follower  on_append role
role=LEADER, log='00', match={1: 2}  on_reply(1, AppendReply(0, True, 1, 1)); match[1]  2  on_reply late
role=LEADER, log='00', match={1: 2}  on_reply(1, AppendReply(0, True, 1, 1)); next[1]  3  on_reply late
role=LEADER, log='00000', match={1: 5}, next={1: 6}  on_reply(1, AppendReply(0, False, 2, 1)); next[1]  6  on_reply late
term=5, role=FOLLOWER, next={1: 3}, match={1: 0}  on_reply(1, AppendReply(5, False, 0, 1))  nothing  on_reply role
"""  # noqa: E501, one row is one line
CLIENT_ROWS = """
term=5, voted_for=3, log='1125'  restored(durable())  (5, 3, '1125')
log='112234445', commit=4, first=6  read_index()  6
commit=9, first=6  read_index()  9
applied=6, acked={1: 7, 2: 7}  may_read(Read(1, None, 6, 7))  True
applied=6, acked={1: 7, 2: 6}  may_read(Read(1, None, 6, 7))  False
applied=5, acked={1: 7, 2: 7}  may_read(Read(1, None, 6, 7))  False
term=5, log='1125'  new.restore(durable()); type(new.log)  <class 'list'>  restored list
commit=5, leader=2, data={'x': 'a'}  durable() == new.durable()  True  durable
applied=6, acked={1: 8, 2: 9}  may_read(Read(1, None, 6, 7))  True
term=1  apply(Entry(1, 2000001, Call('append', 'x', 'a'))); apply(Entry(1, 2000002, Call('append', 'x', 'b'))); apply(Entry(1, 2000001, Call('append', 'x', 'a'))); data  {'x': 'ab'}
execute=lambda call: call.value  apply(Entry(1, 2000001, Call('append', 'x', 'a'))); apply(Entry(1, 2000001, Call('append', 'x', 'a')))  a  apply result
"""  # noqa: E501, one row is one line

_BY_HAND = (
    "In a cell of its own, make a node of five: `node = Votes(0, (1, 2, 3, 4))`, or of "
    "this step's class. Give it the attributes of the verdict; `log='112'` is "
    "`node.log = [Entry(1), Entry(1), Entry(2)]`. Run a rule that yields with "
    "`list(node.on_vote(2, Vote(2, True)))`, then look at the attribute.")
_RULES = {
    "may_vote": ["One vote in a term, for a log that has at least all of this one's. "
        "Which of two logs is newer: the longer one, or the one with the later last "
        "term?"],
    "on_request": ["A vote is remembered, or the term's next candidate gets it, too. "
        "It restarts the timer; a request that is refused does not."],
    "on_request refused": ["Who is refused is told so, too, and a request that is "
        "refused does not restart the timer."],
    "on_request term": ["A response has the voter's term: so an old candidate learns "
        "of the new one."],
    "on_vote": ["Count each voter once, while a candidate, and only votes of this "
        "term: a response to the last election may come now.",
        "If the condition is right: is `lead` called with `yield from`?"],
    "see_term": ["A higher term ends what this node was in the old one: its role, its "
        "vote, and who leads.",
        "If your lines say so: is there a `yield` in it? `Server` calls it and takes "
        "no effects, so a generator does nothing."],
    "stand": ["A candidate begins the next term, its own vote in it is its own, and it "
        "knows no leader. Votes of the last election do not count in this one: with "
        "whom does the set begin?"],
    "fits": ["The log matching property is an induction: new entries fit if the entry "
        "just before them is here. What stands before the first entry of all?"],
    "merged": ["Only a conflict removes entries. A message that is late has a part of "
        "what is here, and the rest of it may be committed."],
    "may_commit": ["Figure 8: a majority holds an entry of an old term, and a later "
        "leader still replaces it. Which entries can no later leader lack?"],
    "on_append": ["Is the message of this term's leader, or of an old one, who is told "
        "so? If it fits, up to which index do both logs agree?"],
    "on_append role": ["Any message of this term's leader, also one that does not fit, "
        "makes this node its follower and restarts its timer."],
    "on_append commit": ["The message vouches for what it has itself and for what is "
        "before that; what is behind it here may be replaced."],
    "on_append round": ["The response names the round of the message that it responds "
        "to."],
    "on_append last": ["A refusal names an index before the one that did not fit, that "
        "this log has. What is committed here agrees with every leader, so it need "
        "not be sent again."],
    "on_reply": ["Messages are late and come twice. Of which term is this response, "
        "and up to which index does the follower hold all that this leader has?"],
    "on_reply late": ["A response may be late, and come after a newer one. What the "
        "follower was known to hold then, it holds still."],
    "on_reply role": ["A message with a higher term has just ended this node's "
        "leadership; may it go on as leader in that term?"],
    "restored": ["What must a node know after a restart, so that it does not vote "
        "twice in a term, and lacks nothing that a leader has counted it for?"],
    "restored list": ["A leader appends to its log: what kind of sequence must it be?"],
    "durable": ["The disk is written whenever this changes. Which of it can a node "
        "learn again from the next leader?"],
    "read_index": ["A new leader has all committed entries, and does not yet know "
        "which they are: it does with the first entry of its own term. What is not "
        "committed need not be waited for."],
    "may_read": ["While a read waits, a majority must say that this node leads still, "
        "in response to what was sent after the read came, in that round or a later "
        "one. And its index must be applied."],
    "apply": ["A copy of call 1 may also be committed after call 2. Request 2000001 is "
        "(2, 1) by `session_of`: call 1 of client 2. Which calls has it made before?"],
    "apply result": ["The client that asks again missed the result: it gets the one "
        "that `execute` returned the first time."],
}
RULE_HINTS = [
    *(Hint(lambda f, name=name: f["rule"] == name, [*words, _BY_HAND])
      for name, words in _RULES.items()),
    Hint(lambda f: "node" not in f and type(f["failure"].cause) is IndexError, [
        "`self.log` may be empty: `self.term_at(self.last)` is 0 then.", _BY_HAND]),
]
