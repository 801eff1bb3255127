"""How an English sentence gives a score.

"so I would give it a 4.", "earning a score of 4 for coherence".
"""

from __future__ import annotations

from dataclasses import replace

from judge.scoring.prose.language import Grammar

# The judge's words for the judged text. An article, a document or a story may be the source.
_TEXT_NOUN = (
    r"(?:summary|summarization|text|response|answer|output|translation|reply|essay|paraphrase"
    r"|headline|rewrite"
    r"|completion|generation|submission|caption|poem|email|message|code|argument|explanation|title)"
)
_WHOSE = r"(?:generated|given|present|candidate|entire|whole|overall|final|provided|submitted)"
_THE_TEXT = rf"(?:the|this)\s++(?:{_WHOSE}\s++)?{_TEXT_NOUN}"
_THIS_TEXT = rf"(?:{_THE_TEXT}|it|this)\b"
_QUALITY = rf"(?:(?:the|its|overall)\s++)*TITLE(?:\s++(?:of|in)\s++{_THIS_TEXT})?"
_ADVERB = (
    r"(?:\s++(?:therefore|thus|hence|also|still|only|overall|clearly|definitely|certainly|just"
    r"|personally|ultimately"
    r"|rightly|easily|consequently))*"
)
# The words between a verb and the score: "as a", "a solid", "a final coherence score of".
_ADJECTIVES = (
    r"(?:final|overall|total|perfect|full|solid|strong|high|low|good|poor|fair|moderate|average"
    r"|resulting|clear|firm"
    r"|decent|respectable|mediocre|corresponding|low-end|flat|very|middling|deserved|well-deserved)"
)
_SCORE_NOUN = r"(?:score|rating|grade|mark)"
_AS_A_SCORE = (
    r"(?:\s++(?:as|at|with|of))?(?:\s++(?:only|just))?(?:\s++(?:an?|the|my))?"
    rf"(?:\s++{_ADJECTIVES})*(?:\s++(?:(?:for\s++)?TITLE\s++)?{_SCORE_NOUN}(?:\s++(?:of|as|at))?)?"
    r"(?:\s++(?:only|just|an?))?\s*+:?\s*+"
)
_OBJECT = (
    rf"(?:\s++(?:{_THE_TEXT}|it|this|its)(?:['’]s)?)?(?:\s++{_QUALITY})?(?:\s++(?:for|on"
    rf"|in)\s++{_QUALITY})?"
)
# "I would give it a", "I'd rate the coherence of this summary as a", "We assign this text a score
# of"
_JUDGE = (
    r"(?P<judge>\b(?:I|we)(?:(?P<would>['’]d|\s++would)|['’](?:ll|m|re)|\s++(?:will|must|am|are"
    r"|have\s++to"
    rf"|can\s++only|shall))?{_ADVERB}\s++(?:give|rate|score|grade|assign|award|mark|giving|rating"
    r"|scoring|grading"
    r"|assigning|awarding|rated|gave|scored|assigned|settle\s++on|go\s++with|going\s++with"
    rf"|say(?:\s++(?:{_THIS_TEXT}|that)(?:['’]s|\s++is))?)"
    rf"{_OBJECT}{_AS_A_SCORE})"
)
_RECEIVES = (
    r"(?:gets|receives|earns|deserves|merits|warrants|scores|rates|is\s++worth|achieves|obtains"
    r"|(?:is|has\s++been)(?:\s++(?:therefore|thus|hence|only))?\s++(?:given|rated|scored|graded"
    r"|assigned|awarded)|is(?=\s++an?\s++(?:clear\s++)?(?:score|rating)\s))"
)
# "The summary gets a", "It deserves a score of", "Its coherence is rated"
_SUBJECT = (
    rf"(?P<subject>\b(?:{_QUALITY}\s++is(?:\s++an?)?\s++|(?:(?:{_THIS_TEXT}|{_QUALITY})|(?:the|its"
    rf"|this)\s++TITLE){_ADVERB}\s++{_RECEIVES}{_ADVERB}{_AS_A_SCORE}))"
)
# "My rating is", "the score for coherence would be", "Its final coherence score is therefore"
_SCORE_IS = (
    r"(?P<noun>\b(?:(?:my|the|its|this|an?|our)\s++)?(?:(?:final|overall|total|resulting|fair"
    r"|good|appropriate|reasonable|suitable|deserved|given|assigned)\s++)*"
    r"(?:TITLE\s++)?(?:score|rating|grade|mark|verdict|judge?ment|assessment|evaluation|answer"
    r"|decision)"
    rf"(?:\s++(?:for|of|on|is\s++for)\s++(?:{_THIS_TEXT}|{_QUALITY}))*(?:\s++I(?:['’]d|\s++would"
    rf"|\s++will)?\s++(?:give|assign)(?:\s++{_THIS_TEXT})?)?"
    r"(?:(?:\s++(?:(?:is|stands\s++at|comes\s++(?:out\s++)?(?:to|at)|would\s++be|will\s++be"
    r"|equals)"
    rf"(?:\s++(?:therefore|thus|hence|then|only|just|an?))*)|\s*+[=–—-])(?=[\s*]))\s*+)"
)
# "A score of 4 is appropriate"; the words after the score are in _DESERVED.
_SCORE_OF = (
    rf"(?P<fair>\b(?:an?|the|my)\s++(?:{_ADJECTIVES}\s++)*(?:TITLE\s++)?{_SCORE_NOUN}\s++of\s++)"
)
_DESERVED = (
    r"(?:\s++(?:is|seems|would\s++be|feels)\s++(?:therefore\s++|thus\s++|most\s++|quite\s++"
    r"|only\s++)?"
    r"(?:appropriate|fair|warranted|justified|reasonable|fitting|right|suitable|deserved|given"
    r"|assigned|awarded"
    r"|in\s++order))"
)
# "This results in a score of", "which earns it a"
_RESULT = (
    r"(?P<result>\b(?:this|that|which|it)\s++(?:results\s++in|leads\s++to|earns|gives|justifies"
    r"|warrants|merits|yields"
    rf"|makes\s++(?:it|this)|deserves|means|brings\s++(?:it|{_THE_TEXT})\s++to)(?:\s++(?:it"
    rf"|{_THE_TEXT}))?{_AS_A_SCORE})"
)
_AFTER_SCORE = (
    rf"(?:\s++(?:to|for)\s++{_THIS_TEXT})?"
    r"(?:\s++(?:for|in|on|regarding|in\s++terms\s++of|with\s++(?:regard|respect)\s++to"
    r"|when\s++it\s++comes\s++to)"
    r"\s++(?:(?:its|the|overall|perfect|good|complete|excellent|full|high|strong|poor|low|being"
    r"|lack\s++of|general)"
    r"\s++)*(?:in|dis|ir|un|non-?)?TITLE\b(?:\s++of\s++" + _THIS_TEXT + r")?)?"
    r"(?:\s++on\s++(?:the|this|a)\s++(?:TITLE\s++)?(?:scale|criterion|metric|rubric|dimension"
    r"|aspect)"
    r"(?:\s++(?:of|from)\s++(?P<low_tail>[0-9]++)\s*+(?:to|-|–)\s*+(?P<high_tail>[0-9]++)"
    r"|\s++of\s++TITLE)?)?"
    r"(?:\s++(?:overall|here|in\s++total|in\s++my\s++(?:view|opinion|judge?ment|assessment)))?"
    r"[)\]]*+(?![\w%+/-])"
)
# The end of the sentence, or the beginning of a reason: ". ", " because", " (".
AFTER = (
    r"\s*+[.!]?[\s)\]]*+\Z|[.!]\s++|\s*+[;(\[]|\s++[-–—]{1,2}\s|—(?=[a-z])|:\s"
    r"|,?\s++(?:because|since|as\s++(?:it|its|the|this|there|all|both|no|most|some|many)|due\s++to"
    r"|for\s++the\s++following|based\s++on|given\s++(?:its|the|that|how|these)"
    r"|indicating|reflecting|while|reason|so\s++that\s++it|thanks\s++to|meaning)\b"
    r"|,\s++\w++\s++TITLE\s*+[.!]?\s*+\Z"
    r"|,\s++(?:it|the|this|which\s++(?:is|reflects|indicates|means))\b"
)
_CONTRAST = r"|,?\s++(?:but|though|although|despite|even\s++though)\b"
_CONDITION = (
    r"\b(?:if|unless|otherwise|suppose|supposing|imagine|assum\w+|hypothetical\w*|ideally|wish"
    r"|hop(?:e|ing)|doubt\w*"
    r"|would\s++have|(?:had|were)\s++(?:it|the|this|there)|provided\s++that"
    r"|as\s++long\s++as|in\s++case|whether)\b"
)
_BETTER = (
    r"\bwith\s++(?:\w++\s++){0,2}?(?:better|more|fewer|less|clearer|shorter|improved|additional"
    r"|extra|another"
    r"|(?:minor|small|slight|further|some|a\s++few)\s++(?:edit\w*|change\w*|fix\w*|work"
    r"|revision\w*|polish\w*|improvement\w*"
    r"|adjustment\w*|tweak\w*|correction\w*|addition\w*))\b"
)
# Others who give or get a score: "the reviewers gave it a 4".
_OTHER_GIVERS = (
    r"(?:source|original|reference|references|article|document|passage|story|baseline|rubric"
    r"|criteri\w+|guidelines?"
    r"|instructions?|author|user|users|reader|readers|reviewers?|critics?|annotators?|people"
    r"|students?|others?|humans?"
    r"|experts?|editors?|previous|first|second|third|other|another|competitor|prompt|question|he"
    r"|she|they|you|who"
    r"|someone|somebody|anyone|everyone|nobody|texts?\s++(?:like|with)|summaries|teacher|match"
    r"|game|film|movie"
    r"|team|student|exam|book|hotel|product)"
)
_QUALITIES = (
    r"(?!TITLE\b)(?:fluency|coherence|consistency|relevance|relevancy|accuracy|grammar|style"
    r"|clarity|conciseness|brevity"
    r"|faithfulness|factuality|completeness|correctness|helpfulness|harmlessness|creativity"
    r"|readability|tone"
    r"|engagement|informativeness|coverage|depth|originality|truthfulness|safety|politeness"
    r"|structure"
    r"|organi[sz]ation|formatting|spelling|language|content|presentation|quality|vocabulary"
    r"|wording|naturalness"
    r"|groundedness|toxicity|bias|specificity|usefulness|adequacy)"
)
_ABOUT_OTHERS = (
    r"\A\W*(?:text|summary|response|answer|output|model|system|candidate|version)\s++(?:[0-9]+"
    r"|[A-Z])\s|"
    r"(?:(?:\A|[;:]\s|\b(?:but|while|whereas|although|though|yet)\s)\W*(?:the|its|this|an?|his"
    r"|her|their|your|our|for|in|on|as\s++for)?"
    rf"\s*+(?:the\s++|its\s++)?(?:{_OTHER_GIVERS}|{_QUALITIES})(?=\W))"
)
_FOR_A_QUALITY = (
    r"\b(?:in\s++terms\s++of|as\s++for|regarding|concerning|when\s++it\s++comes\s++to"
    r"|with\s++(?:respect|regard)\s++to"
    rf"|for|on|in|as\s++regards)\s++(?:the\s++|its\s++)?{_QUALITIES}\W*\Z"
)
_REPORTS = (
    r"\b(?:says|said|saying|claims|claimed|claiming|reads|adds|writes|wrote|tells?|told|asks?"
    r"|asked|asking|demands?|demanded|begs"
    r"|instruct\w*|request\w*|order\w*|insists?|quot\w+|according\s++to|ends?\s++(?:with|in)"
    r"|ending\s++(?:with|in)"
    r"|please|ignore|attempt\w*|manipulat\w*|inject\w*|as\s++if|pretend\w*|supposed(?:ly)?"
    r"|allegedly)\b"
)
_MODAL = (
    r"\b(?:would|could|might|may|should|shall|must|can|cannot|to|will|not|never|n['’]t"
    r"|let)\s++(?:\w+\s++)?\Z"
)
_DOUBT = (
    rf"{_CONDITION}|{_BETTER}|{_ABOUT_OTHERS}|{_FOR_A_QUALITY}|\A\W*with(?:out)?\b|\A\W*(?:once"
    rf"|after|until|when|whenever"
    r"|before|next|last)\b"
)
DOUBT_AFTER = (
    rf"{_CONDITION}|{_BETTER}|\b(?:would|might|could\s++(?:be\s++(?:an?|lower|higher|[0-9])|have"
    rf"|get|earn"
    r"|receive|deserve)|at\s++(?:first|best|most|least)|request\w*|demand\w*|instruct\w*"
    r"|asked|told|maximum|max|previous\w*|initial\w*|originally|example|or\s++(?:an?\s++)?(?:lower"
    r"|higher|less|more|so)"
    r"|not\s++(?:for|in|as|because|really|quite|an?|the|yet|sure|certain)|maybe|perhaps|possibly"
    r"|probably|unsure|cannot|can['’]t"
    r"|rather\s++than|instead|no,|wait|actually|expect\w*|required?|needed|target|until|once"
    r"|after)\b|\?"
    rf"|\A\W*(?:for\s++)?(?:its\s++|the\s++)?{_QUALITIES}(?:\W*\Z|\s*+,\s++not\b)"
)

_CONCLUSION = (
    r"(?:overall|finally|ultimately|in\s++(?:conclusion|summary|short|sum|total|all|my\s++(?:view"
    r"|opinion|judge?ment"
    r"|assessment))|to\s++(?:conclude|sum\s++up|summarize)|on\s++balance|all\s++in\s++all"
    r"|taken\s++together"
    r"|all\s++things\s++considered|(?:so|and)\s++finally|conclusion|final\s++(?:verdict|answer)"
    r"|assessment|evaluation|verdict|result"
    r"|overall\s++(?:assessment|evaluation|verdict)|after\s++(?:(?:careful|thorough"
    r"|due)\s++)?(?:consideration|review|thought|analysis|evaluation)"
    rf"|after\s++(?:reading|evaluating|reviewing|analy[sz]ing|considering"
    rf"|assessing)\s++(?:{_THIS_TEXT}"
    r"|all\s++\w++|everything)"
    r"|taking\s++(?:everything|all(?:\s++of)?\s++this)\s++into\s++(?:account|consideration)"
    r"|(?:my|the)\s++(?:verdict|conclusion|assessment|evaluation)"
    r"|for\s++(?:these|this|that|those|the\s++above)\s++reasons?|(?:based\s++on|given|considering"
    r"|because\s++of)"
    r"\s++(?:this|that|these|the\s++above|all\s++this)(?:\s++\w+)?|yes|okay|ok|sure|well|score"
    r"|TITLE)"
)
_THEREFORE = (
    r"(?:so|therefore|thus|hence|consequently|accordingly|as\s++a\s++result|as\s++such"
    r"|which\s++is\s++why"
    r"|that\s++is\s++why|this\s++is\s++why|for\s++(?:this|that|these)\s++reasons?)"
)
_THINK = (
    r"(?:(?:in\s++conclusion\s++)?I\s++(?:think|believe|feel|find|conclude|judge"
    r"|am\s++confident)(?:\s++that)?)"
)
_ON_A_SCALE = (
    r"(?:on|using)\s++(?:a|the)\s++scale\s++(?:of|from)\s++(?P<low_lead>[0-9]++)\s*+(?:to|-"
    r"|–)\s*+(?P<high_lead>[0-9]++)"
    r"|on\s++(?:this|the\s++given|the)\s++scale"
)
_REASONS_ANNOUNCED = (
    r"there\s++(?:are|is)\s++\w++\s++reasons?\s++(?:why|that|for\s++which)|(?:for"
    r"|in\s++terms\s++of|regarding|as\s++for|on)\s++(?:the\s++|its\s++)?TITLE"
)
_LEAD_IN = (
    rf"[\s\W]*+(?:(?:{_CONCLUSION}|{_THEREFORE}|and|{_THINK}|{_ON_A_SCALE}|{_REASONS_ANNOUNCED}"
    rf"|(?:to"
    rf"|in)\s++{_THIS_TEXT})(?:\s*+[,:;–—-]\s*+|\s++))*+"
)
_NEW_CLAUSE = rf"(?:\b(?:and\s++)?{_THEREFORE}\b|,\s++so\b)(?:\s*+,)?\s*+"

SENTENCE = Grammar(
    # "The text is clear, so I would give it a 4 out of 5 because …"
    assertion=rf"(?:{_JUDGE}|{_SUBJECT}|{_SCORE_IS}|{_RESULT})SCORE{_AFTER_SCORE}",
    lead=_LEAD_IN,
    clause=_NEW_CLAUSE,
    doubt=_DOUBT + rf"|{_REPORTS}|\bwould\b",
    after=AFTER,
    doubt_after=DOUBT_AFTER,
)
PLAIN_FACT = Grammar(
    # "It gets a 4, but it could be shorter": no "would" in it, so "but" takes nothing back.
    assertion=SENTENCE.assertion,
    lead=_LEAD_IN,
    clause=_NEW_CLAUSE,
    doubt=_DOUBT + rf"|{_REPORTS}|\bwould\b",
    after=_CONTRAST.removeprefix("|"),
    doubt_after=(
        rf"{_CONDITION}|{_BETTER}|\b(?:would|not|never|cannot|can['’]t|no|maybe|perhaps|only"
        rf"|instead)\b"
        r"|\?"
    ),
    unless="would",
)
WITH_A_REASON_FIRST = Grammar(
    # "Given these flaws, a score of 4 is appropriate.", "Since all facts are right, I give it a 4."
    assertion=SENTENCE.assertion,
    lead=_LEAD_IN,
    clause=r",\s++",
    before=(
        r"\W*(?:given\s++(?:its|the|that|how|these|this)|based\s++on|considering|because|since"
        r"|as\s++(?:it|its|the|this|there|all|both|no|most)|due\s++to|while|although|though"
        r"|despite|even\s++though|in\s++view\s++of|in\s++light\s++of|for\s++its)\b"
    ),
    doubt=(
        rf"{_CONDITION}|{_BETTER}|{_REPORTS}|{_FOR_A_QUALITY}|\bwould\b"
        r"|\b(?:as|since)\s++(?:requested|the\s++(?:author|user|text|rubric))\b"
    ),
    after=AFTER,
    doubt_after=DOUBT_AFTER,
)
FAIR = Grammar(
    # "A score of 4 seems fair."
    assertion=(
        rf"{_SCORE_OF}SCORE(?:{_AFTER_SCORE}{_DESERVED}"
        rf"|{_DESERVED}{_AFTER_SCORE.replace('_tail', '_end')}"
        rf"|{_AFTER_SCORE.replace('_tail', '_last')}(?=\s*+[.!]?\s*+\Z))(?![\w%+/-])"
    ),
    lead=_LEAD_IN,
    clause=_NEW_CLAUSE,
    doubt=_DOUBT + rf"|{_REPORTS}|\bwould\b",
    after=AFTER,
    doubt_after=DOUBT_AFTER,
)
FAIR_WITH_A_REASON_FIRST = replace(
    WITH_A_REASON_FIRST,
    # "Given these flaws, a score of 4 is appropriate."
    assertion=FAIR.assertion,
)
_EARNING = (
    r"(?:(?:thus|thereby|therefore|hence|so|and)\s++)?"
    rf"(?:(?:resulting|results)\s++in|earn(?:ing|s)(?:\s++(?:it|{_THE_TEXT}))?|receiving|scoring"
    r"|achieving|gaining|getting|garnering|meriting|deserving|warranting|justifying|yielding"
    rf"|obtaining|indicating|suggesting|reflecting|leading\s++to|giving\s++(?:it|this|{_THE_TEXT})"
    r"|making\s++(?:it|this)(?=\s++an?\s++(?:\w++\s++){0,2}?(?:score|rating)\s++of\b)"
    r"|(?:which\s++)?(?:results\s++in|justifies|warrants|merits|earns(?:\s++it)?|gives\s++it))"
)
# A participle takes over what the verb before it says: "it would be clear, earning a score of 4".
_NOT_EARNED = (
    r"\b(?:could|should|might|may)\s++have\b|\b(?:would|might|should|must)\b[^,;]*+,?\s*+\Z"
    r"|\b(?:claims|says|pretends|seems|wants|tries|promises)\s++(?:to|that)\b[^,;]*+,?\s*+\Z"
    r"|\b(?:says|said|reads|adds|writes|wrote|tells|ends|words|quote|begs|asks|claims|demands)"
    r"\s*+\Z"
    r"|\brequested\b|\bdemanded\b|\binstruct\w*|\brubric\b|(?:\b(?:not|never)|n['’]t)\s*+\Z"
)
PARTICIPLE = Grammar(
    # "It is clear and complete, earning a score of 4 for coherence."
    assertion=rf"(?P<participle>(?<!\w){_EARNING}{_AS_A_SCORE})SCORE{_AFTER_SCORE}",
    lead=r"\s*+",
    clause=r"[,;(–—]\s*+\Z",
    before=r".*\w",
    doubt=rf"{_DOUBT}|{_MODAL}|{_NOT_EARNED}",
    after=AFTER,
    doubt_after=DOUBT_AFTER,
)
WITH_A_SCORE = Grammar(
    # "It lacks a structure, with a score of 2.", "(score: 2)"
    assertion=(
        rf"(?P<with>(?<!\w)(?:hence|thus|with|score|rating"
        rf"|rated)(?:\s++of)?{_AS_A_SCORE})SCORE{_AFTER_SCORE}"
    ),
    lead=r"\s*+",
    clause=r"[,;(–—]\s*+\Z",
    before=PARTICIPLE.before,
    doubt=PARTICIPLE.doubt
    + r"|\b(?:match|game|half|won|lost|beat|exam|test|season|requested|and|or)\W*\Z",
    after=AFTER,
    doubt_after=DOUBT_AFTER,
)
ELLIPSIS = Grammar(
    # "The text is clear and gets a score of 4."
    assertion=(
        r"(?P<ellipsis>\b(?:(?:therefore|thus|hence|consequently|so"
        rf"|also)\s++)?{_RECEIVES}{_ADVERB}{_AS_A_SCORE})SCORE{_AFTER_SCORE}"
    ),
    lead=r"\s*+",
    clause=rf"(?:,\s*+)?\b(?:and(?:\s++(?:so|{_THEREFORE}))?|{_THEREFORE})\s++",
    before=rf"{_LEAD_IN}(?:{_THIS_TEXT}|TITLE)",
    doubt=_DOUBT + rf"|{_REPORTS}|\bwould\b|\bneeds?\b|\bshould\b|\bmust\b|\bwants?\b",
    after=AFTER,
    doubt_after=DOUBT_AFTER,
)
THAT_SCORES = Grammar(
    # "It is complete, resulting in a clear summary that scores a 4."
    assertion=rf"(?P<relative>\bthat\s++{_RECEIVES}{_AS_A_SCORE})SCORE{_AFTER_SCORE}",
    lead=r"\s*+",
    clause=rf"{_TEXT_NOUN}\s++\Z",
    before=r".*\b(?:resulting\s++in|making\s++(?:it|this))\s++an?\s(?:[\w-]++\s++)*+\Z",
    doubt=PARTICIPLE.doubt,
    after=AFTER,
    doubt_after=DOUBT_AFTER,
)
FRACTION = Grammar(
    # "Overall, 4 out of 5.", "It is good, 4/5."
    assertion=(
        r"(?P<fraction>)SCORE(?<=[0-9e☆★⭐])(?:(?<=/[0-9])|(?<=/[0-9][0-9])|(?<=/100)"
        r"|(?<=of [0-9])|(?<=of [0-9][0-9])|(?<=of five)|(?<=of ten))\s*+[.!]?[\s)]*+\Z"
    ),
    lead=rf"\s*+(?:(?:{_CONCLUSION}|{_THEREFORE})(?:\s*+[,:–—-]\s*+|\s++))*+",
    clause=r"[,:(–—]\s++",
    doubt=_DOUBT + rf"|{_REPORTS}|{_MODAL}|\bscale\b",
    says_so="",
)
IT_IS = Grammar(
    # "This is a solid 4.", "It's a 4 because one name is wrong.", "A clear 4."
    assertion=(
        rf"(?P<it_is>\b(?:it|this|that)(?:['’]s|\s++is){_ADVERB}\s++an?\s++(?:{_ADJECTIVES}\s++)*"
        rf"|(?<!\w)an?\s++(?:{_ADJECTIVES}\s++)*|(?<!\w)(?:{_ADJECTIVES}\s++)+)"
        rf"(?=[0-9])SCORE{_AFTER_SCORE}"
    ),
    lead=_LEAD_IN,
    clause=_NEW_CLAUSE,
    doubt=SENTENCE.doubt,
    after=AFTER,
    doubt_after=DOUBT_AFTER,
)
GRAMMARS = (
    IT_IS,
    SENTENCE,
    PLAIN_FACT,
    WITH_A_REASON_FIRST,
    FAIR,
    FAIR_WITH_A_REASON_FIRST,
    PARTICIPLE,
    WITH_A_SCORE,
    ELLIPSIS,
    THAT_SCORES,
    FRACTION,
)

# For scales whose labels are two texts.
_CANDIDATE = (
    r"(?:(?:the\s++)?(?:text|summary|response|output|answer|option|assistant|candidate"
    r"|version)\s++)?"
)
_BY_HOW_MUCH = (
    r"(?:(?:clearly|slightly|much|overall|definitely|significantly|marginally|still|therefore"
    r"|thus)\s++)*"
)
PREFERENCE = Grammar(
    # "Summary B is better because it names both teams.", "I prefer A.", "The better text is B."
    assertion=(
        rf"(?:(?P<prefers>\bI(?:['’](?:d|ll)|\s++(?:would|will|must))?{_ADVERB}\s++(?:prefer"
        r"|choose|pick|select|go\s++with|vote\s++for)\s++"
        r"|\b(?:(?:the|my)\s++)?(?:better|best|stronger|preferred|superior|winning|winner|choice"
        r"|preference|pick)(?:\s++(?:one|text|summary|response|answer|output|option))?\s++(?:is"
        r"|goes\s++to)\s*+:?\s++)|(?<!\w))"
        rf"{_CANDIDATE}SCORE(?(prefers)"
        rf"|\s++(?:is\s++{_BY_HOW_MUCH}(?:the\s++)?{_BY_HOW_MUCH}(?:better|best"
        r"|winner|superior|preferred|preferable|stronger|the\s++better)"
        r"(?:\s++(?:one|choice|option|text|summary|response|answer"
        r"|output))?(?:\s++than\s++(?:(?:the\s++)?(?:text|summary|response|answer"
        r"|output)\s++)?[A-Z])?|wins)"
        r")(?:\s++(?:overall|here|in\s++terms\s++of\s++TITLE))?(?![\w%+/-])"
    ),
    lead=_LEAD_IN,
    clause=_NEW_CLAUSE,
    doubt=_DOUBT + rf"|{_REPORTS}|\bwould\b",
    after=AFTER,
    doubt_after=DOUBT_AFTER,
)
# For scales whose labels are words: "The text is irrelevant to the question."
IS_LABEL = Grammar(
    assertion=(
        rf"(?P<is>\b(?:{_THIS_TEXT}|TITLE)\s++is\s++(?:(?:clearly|completely|entirely|fully"
        rf"|therefore"
        r"|thus|overall|also|definitely|indeed|simply|totally)\s++)*)SCORE"
        r"(?:\s++(?:to|for|with)\s++(?:the|this)\s++(?:question|prompt|topic|task|query|request"
        r"|source|user['’]s\s++(?:question|request)))?(?![\w%+/-])"
    ),
    lead=_LEAD_IN,
    clause=_NEW_CLAUSE,
    doubt=_DOUBT + rf"|{_REPORTS}|\bwould\b",
    after=AFTER,
    doubt_after=DOUBT_AFTER,
)
