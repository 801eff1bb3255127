"""How an English sentence gives a score.

"so I would give it a 4.", "earning a score of 4 for coherence". `Grammar` explains SCORE, TITLE and
the spaces of the patterns. Most comments are examples of what the next pattern matches.
"""

from __future__ import annotations

from dataclasses import replace

from judge.scoring.prose import reasons
from judge.scoring.prose.language import Grammar

# The judge's words for the judged text. An article, a document or a story may be the source.
_TEXT_NOUN = (
    r"(?:summary|summarization|text|response|answer|output|translation|reply|essay|paraphrase"
    r"|headline|rewrite|completion|generation|submission|caption|poem|email|message|code"
    r"|argument|explanation|title)"
)
_TEXT_ADJECTIVE = (
    r"(?:generated|given|present|candidate|entire|whole|overall|final|provided"
    r"|submitted)"
)
# "the summary", "this generated text"
_THE_TEXT = rf"(?:the|this) (?:{_TEXT_ADJECTIVE} )?{_TEXT_NOUN}"
_THIS_TEXT = rf"(?:{_THE_TEXT}|it|this)\b"
# "its coherence", "the overall coherence of this summary"
_ITS_QUALITY = rf"(?:(?:the|its|overall) )*TITLE(?: (?:of|in) {_THIS_TEXT})?"
_ADVERB = (
    r"(?: (?:therefore|thus|hence|also|still|only|overall|clearly|definitely|certainly|just"
    r"|personally|ultimately|rightly|easily|consequently))*"
)
_SCORE_ADJECTIVE = (
    r"(?:final|overall|total|perfect|full|solid|strong|high|low|good|poor|fair|moderate|average"
    r"|resulting|clear|firm|decent|respectable|mediocre|corresponding|low-end|flat|very"
    r"|middling|deserved|well-deserved)"
)
_SCORE_NOUN = r"(?:score|rating|grade|mark)"
# The words between a verb and the score: "as a", "a solid", "a final coherence score of".
_AS_A_SCORE = (
    rf"(?: (?:as|at|with|of))?(?: (?:only|just))?(?: (?:an?|the|my))?(?: {_SCORE_ADJECTIVE})*"
    rf"(?: (?:(?:for )?TITLE )?{_SCORE_NOUN}(?: (?:of|as|at))?)?(?: (?:only|just|an?))?\s*+:?\s*+"
)
# "this summary", "it for coherence", "the coherence of the text"
_WHAT_IS_JUDGED = (
    rf"(?: (?:{_THE_TEXT}|it|this|its)(?:['’]s)?)?(?: {_ITS_QUALITY})?"
    rf"(?: (?:for|on|in) {_ITS_QUALITY})?"
)
# "I would give it a", "I'd rate the coherence of this summary as a"
_JUDGE = (
    r"(?P<judge>\b(?:I|we)"
    r"(?:(?P<would>['’]d| would)|['’](?:ll|m|re)"
    r"| (?:will|must|am|are|have to|can only|shall))?"
    rf"{_ADVERB} "
    r"(?:give|rate|score|grade|assign|award|mark|giving|rating|scoring|grading|assigning"
    r"|awarding|rated|gave|scored|assigned|settle on|go with|going with"
    rf"|say(?: (?:{_THIS_TEXT}|that)(?:['’]s| is))?)"
    rf"{_WHAT_IS_JUDGED}{_AS_A_SCORE})"
)
# "deserves", "has been given", "is therefore rated"
_RECEIVES = (
    r"(?:gets|receives|earns|deserves|merits|warrants|scores|rates|is worth|achieves|obtains"
    r"|(?:is|has been)(?: (?:therefore|thus|hence|only))? "
    r"(?:given|rated|scored|graded|assigned|awarded)"
    r"|is(?= an? (?:clear )?(?:score|rating)\s))"
)
# "The summary gets a", "It deserves a score of", "Its coherence is rated"
_SUBJECT = (
    r"(?P<subject>\b"
    rf"(?:{_ITS_QUALITY} is(?: an?)? "
    rf"|(?:(?:{_THIS_TEXT}|{_ITS_QUALITY})|(?:the|its|this) TITLE){_ADVERB} {_RECEIVES}"
    rf"{_ADVERB}{_AS_A_SCORE}))"
)
# "My rating is", "the score for coherence would be", "Its final coherence score is therefore"
_SCORE_IS = (
    r"(?P<noun>\b(?:(?:my|the|its|this|an?|our) )?"
    r"(?:(?:final|overall|total|correct|resulting|fair|good|appropriate|reasonable|suitable"
    r"|deserved|given|assigned) )*"
    r"(?:TITLE )?"
    r"(?:score|rating|grade|mark|verdict|judge?ment|assessment|evaluation|answer|decision)"
    rf"(?: (?:for|of|on|is for) (?:{_THIS_TEXT}|{_ITS_QUALITY}))*"
    rf"(?: I(?:['’]d| would| will)? (?:give|assign)(?: {_THIS_TEXT})?)?"
    r"(?:(?: "
    r"(?:(?:is|stands at|comes (?:out )?(?:to|at)|would be|will be|equals)"
    r"(?: (?:therefore|thus|hence|then|only|just|an?))*)"
    r"|\s*+[=–—-])"
    r"(?=[\s*]))"
    r"\s*+)"
)
# "A score of 4 is appropriate"; the words after the score are in _DESERVED.
_SCORE_OF = (
    rf"(?P<fair>\b(?:an?|the|my) (?:{_SCORE_ADJECTIVE} )*(?:TITLE )?{_SCORE_NOUN} of )"
)
# "is appropriate", "seems fair", "would be most fitting"
_DESERVED = (
    r"(?: (?:is|seems|would be|feels) (?:therefore |thus |most |quite |only )?"
    r"(?:appropriate|fair|warranted|justified|reasonable|fitting|right|suitable|deserved|given"
    r"|assigned|awarded|in order))"
)
# "This results in a score of", "which earns it a"
_RESULT = (
    r"(?P<result>\b(?:this|that|which|it) "
    r"(?:results in|leads to|earns|gives|justifies|warrants|merits|yields"
    rf"|makes (?:it|this)|deserves|means|brings (?:it|{_THE_TEXT}) to)"
    rf"(?: (?:it|{_THE_TEXT}))?{_AS_A_SCORE})"
)
# "for coherence", "in terms of its overall coherence on a scale of 1 to 5"
_AFTER_SCORE = (
    rf"(?: (?:to|for) {_THIS_TEXT})?"
    r"(?: (?:for|in|on|regarding|in terms of|with (?:regard|respect) to|when it comes to) "
    r"(?:(?:its|the|overall|perfect|good|complete|excellent|full|high|strong|poor|low|being"
    r"|lack of|general) )*"
    rf"(?:in|dis|ir|un|non-?)?TITLE\b(?: of {_THIS_TEXT})?)?"
    r"(?: on (?:the|this|a) (?:TITLE )?(?:scale|criterion|metric|rubric|dimension|aspect)"
    r"(?: (?:of|from) (?P<low_tail>[0-9]++)\s*+(?:to|-|–)\s*+(?P<high_tail>[0-9]++)| of TITLE)?)?"
    r"(?: (?:overall|here|in total|in my (?:view|opinion|judge?ment|assessment)))?[)\]]*+"
    r"(?![\w%+/-])"
)
# The end of the sentence, or the beginning of a reason: ". ", " because", " (".
AFTER = (
    r"\s*+[.!]?[\s)\]]*+\Z|[.!] |\s*+[;(\[]| [-–—]{1,2}\s|—(?=[a-z])|:\s"
    r"|,? "
    r"(?:because|since|as (?:it|its|the|this|there|all|both|no|most|some|many)|due to"
    r"|for the following|based on|given (?:its|the|that|how|these)|indicating|reflecting|while"
    r"|reason|so that it|thanks to|meaning)\b"
    r"|, \w++ TITLE\s*+[.!]?\s*+\Z|, (?:it|the|this|which (?:is|reflects|indicates|means))\b"
)
# ", but", " even though"
_CONTRAST = r",? (?:but|though|although|despite|even though)\b"
# A score that the text does not have: "if it were shorter", "ideally", "it would have".
_CONDITION = (
    r"\b"
    r"(?:if|unless|otherwise|suppose|supposing|imagine|assum\w+|hypothetical\w*|ideally|wish"
    r"|hop(?:e|ing)|doubt\w*|would have|(?:had|were) (?:it|the|this|there)|provided that"
    r"|as long as|in case|whether)\b"
)
# "with fewer errors", "with a few small edits"
WITH_CHANGES = (
    r"\bwith (?:\w++ ){0,2}?"
    r"(?:better|more|fewer|less|clearer|shorter|improved|additional|extra|another"
    r"|(?:minor|small|slight|further|some|a few) "
    r"(?:edit\w*|change\w*|fix\w*|work|revision\w*|polish\w*|improvement\w*|adjustment\w*"
    r"|tweak\w*|correction\w*|addition\w*))\b"
)
# Others who give or get a score: "the reviewers gave it a 4".
_OTHERS = (
    r"(?:source|original|reference|references|article|document|passage|story|baseline|rubric"
    r"|criteri\w+|guidelines?|instructions?|author|user|users|reader|readers|reviewers?"
    r"|critics?|annotators?|people|students?|others?|humans?|experts?|editors?|previous|first"
    r"|second|third|other|another|competitor|prompt|question|he|she|they|you|who|someone"
    r"|somebody|anyone|everyone|nobody|texts? (?:like|with)|summaries|teacher|match|game|film"
    r"|movie|team|student|exam|book|hotel|product)"
)
# A quality other than the criterion's: "its fluency is a 5" gives no score for coherence.
_OTHER_QUALITY = (
    r"(?!TITLE\b)"
    r"(?:fluency|coherence|consistency|relevance|relevancy|accuracy|grammar|style|clarity"
    r"|conciseness|brevity|faithfulness|factuality|completeness|correctness|helpfulness"
    r"|harmlessness|creativity|readability|tone|engagement|informativeness|coverage|depth"
    r"|originality|truthfulness|safety|politeness|structure|organi[sz]ation|formatting|spelling"
    r"|language|content|presentation|quality|vocabulary|wording|naturalness|groundedness"
    r"|toxicity|bias|specificity|usefulness|adequacy)"
)
# "Summary 2 ", "but the reviewers", "; its fluency"
_ABOUT_OTHERS = (
    r"\A\W*(?:text|summary|response|answer|output|model|system|candidate|version) "
    r"(?:[0-9]+|[A-Z])\s"
    r"|(?:(?:\A|[;:]\s|\b(?:but|while|whereas|although|though|yet)\s)\W*"
    r"(?:the|its|this|an?|his|her|their|your|our|for|in|on|as for)?\s*+(?:the |its )?"
    rf"(?:{_OTHERS}|{_OTHER_QUALITY})(?=\W))"
)
# "in terms of its fluency," at the end of a reason: the score after it is one for fluency.
_FOR_A_QUALITY = (
    r"\b"
    r"(?:in terms of|as for|regarding|concerning|when it comes to|with (?:respect|regard) to|for"
    rf"|on|in|as regards) (?:the |its )?{_OTHER_QUALITY}\W*\Z"
)
# "4 for fluency", "4 - style, not coherence"
FOR_ANOTHER_QUALITY = (
    rf"\A\W*(?:for )?(?:its |the )?{_OTHER_QUALITY}(?:\W*\Z|\s*+, not\b)"
)
# What somebody else says or asks for: "the text says that it deserves a 5".
_REPORTED = (
    r"\b"
    r"(?:says|said|saying|claims|claimed|claiming|reads|adds|writes|wrote|tells?|told|asks?|asked"
    r"|asking|demands?|demanded|begs|instruct\w*|request\w*|order\w*|insists?|quot\w+"
    r"|according to|ends? (?:with|in)|ending (?:with|in)|please|ignore|attempt\w*|manipulat\w*"
    r"|inject\w*|as if|pretend\w*|supposed(?:ly)?|allegedly)\b"
)
# "would", "should probably", "not" right before the score's verb
_MODAL = (
    r"\b(?:would|could|might|may|should|shall|must|can|cannot|to|will|not|never|n['’]t|let) "
    r"(?:\w+ )?\Z"
)
# What makes the reason before an assertion doubtful: "If it were shorter", "Once it is edited".
_DOUBT = (
    rf"{_CONDITION}|{WITH_CHANGES}|{_ABOUT_OTHERS}|{_FOR_A_QUALITY}|\A\W*with(?:out)?\b"
    r"|\A\W*(?:once|after|until|when|whenever|before|next|last)\b"
)
_DOUBT_BEFORE = rf"{_DOUBT}|{_REPORTED}|\bwould\b"

# "Overall", "In my opinion", "Taking everything into account"
_CONCLUSION = (
    r"(?:overall|finally|ultimately"
    r"|in (?:conclusion|summary|short|sum|total|all|my (?:view|opinion|judge?ment|assessment))"
    r"|to (?:conclude|sum up|summarize)|on balance|all in all|taken together"
    r"|all things considered|(?:so|and) finally|conclusion|final (?:verdict|answer)|assessment"
    r"|evaluation|verdict|result|overall (?:assessment|evaluation|verdict)"
    r"|after (?:(?:careful|thorough|due) )?(?:consideration|review|thought|analysis|evaluation)"
    r"|after (?:reading|evaluating|reviewing|analy[sz]ing|considering|assessing) "
    rf"(?:{_THIS_TEXT}|all \w++|everything)"
    r"|taking (?:everything|all(?: of)? this) into (?:account|consideration)"
    r"|(?:my|the) (?:verdict|conclusion|assessment|evaluation)"
    r"|for (?:these|this|that|those|the above) reasons?"
    r"|(?:based on|given|considering|because of) (?:this|that|these|the above|all this)"
    r"(?: \w+)?"
    r"|yes|okay|ok|sure|well|sorry|(?:my )?apologies|score|TITLE)"
)
_THEREFORE = (
    r"(?:so|therefore|thus|hence|consequently|accordingly|as a result|as such|which is why"
    r"|that is why|this is why|for (?:this|that|these) reasons?)"
)
# "I think that", "I am confident"
_THINK = (
    r"(?:(?:in conclusion )?I "
    r"(?:think|believe|feel|find|conclude|judge|am confident)(?: that)?)"
)
# "on a scale from 1 to 5", "on this scale", "out of 5"
_ON_A_SCALE = (
    r"(?:on|using) (?:a|the) scale (?:of|from) (?P<low_lead>[0-9]++)\s*+(?:to|-|–)\s*+"
    r"(?P<high_lead>[0-9]++)"
    r"|on (?:this|the given|the) scale|out of (?P<top_lead>[0-9]++)(?: points)?"
)
# "there are two reasons why", "in terms of coherence"
_ANNOUNCEMENT = (
    r"there (?:are|is) \w++ reasons? (?:why|that|for which)"
    r"|(?:for|in terms of|regarding|as for|on) (?:the |its )?TITLE"
)
# "Overall, I think that", "So, on a scale of 1 to 5,"
_LEAD_IN = (
    r"[\s\W]*+"
    rf"(?:(?:{_CONCLUSION}|{_THEREFORE}|and|{_THINK}|{_ON_A_SCALE}|{_ANNOUNCEMENT}"
    rf"|(?:to|in) {_THIS_TEXT})"
    r"(?:\s*+[,:;–—-]\s*+| ))*+"
)
# ", so", "and therefore,"
_CONSEQUENCE = rf"(?:\b(?:and )?{_THEREFORE}\b|, so\b)(?:\s*+,)?\s*+"

SENTENCE = Grammar(
    # "The text is clear, so I would give it a 4 out of 5 because …"
    assertion=rf"(?:{_JUDGE}|{_SUBJECT}|{_SCORE_IS}|{_RESULT})SCORE{_AFTER_SCORE}",
    lead=_LEAD_IN,
    clause=_CONSEQUENCE,
    doubt=_DOUBT_BEFORE,
    after=AFTER,
    doubt_after=reasons.DOUBT,
)
PLAIN_FACT = replace(
    SENTENCE,
    # "It gets a 4, but it could be shorter": no "would" in it, so "but" takes nothing back.
    after=_CONTRAST,
    doubt_after=(
        rf"{_CONDITION}|{WITH_CHANGES}"
        r"|\b(?:would|not|never|cannot|can['’]t|no|maybe|perhaps|only|instead)\b|\?"
    ),
    unless="would",
)
WITH_A_REASON_FIRST = replace(
    SENTENCE,
    # "Given these flaws, a score of 4 is appropriate.", "Since all facts are right, I give it a 4."
    clause=r", ",
    before=(
        r"\W*"
        r"(?:given (?:its|the|that|how|these|this)|based on|considering|because|since"
        r"|as (?:it|its|the|this|there|all|both|no|most)|due to|while|although|though|despite"
        r"|even though|in view of|in light of|for its)\b"
    ),
    doubt=(
        rf"{_CONDITION}|{WITH_CHANGES}|{_REPORTED}|{_FOR_A_QUALITY}|\bwould\b"
        r"|\b(?:as|since) (?:requested|the (?:author|user|text|rubric))\b"
    ),
)
FAIR = replace(
    SENTENCE,
    # "A score of 4 seems fair."
    assertion=(
        rf"{_SCORE_OF}SCORE"
        rf"(?:{_AFTER_SCORE}{_DESERVED}|{_DESERVED}{_AFTER_SCORE.replace('_tail', '_end')}"
        rf"|{_AFTER_SCORE.replace('_tail', '_last')}(?=\s*+[.!]?\s*+\Z))"
        r"(?![\w%+/-])"
    ),
)
FAIR_WITH_A_REASON_FIRST = replace(
    WITH_A_REASON_FIRST,
    # "Given these flaws, a score of 4 is appropriate."
    assertion=FAIR.assertion,
)
# "thus earning it", "resulting in", "which justifies"
_EARNING = (
    r"(?:(?:thus|thereby|therefore|hence|so|and) )?"
    rf"(?:(?:resulting|results) in|earn(?:ing|s)(?: (?:it|{_THE_TEXT}))?|receiving|scoring"
    r"|achieving|gaining|getting|garnering|meriting|deserving|warranting|justifying|yielding"
    rf"|obtaining|indicating|suggesting|reflecting|leading to|giving (?:it|this|{_THE_TEXT})"
    r"|making (?:it|this)(?= an? (?:\w++ ){0,2}?(?:score|rating) of\b)"
    r"|(?:which )?(?:results in|justifies|warrants|merits|earns(?: it)?|gives it))"
)
# A participle takes over what the verb before it says: "it would be clear, earning a score of 4".
_NOT_EARNED = (
    r"\b(?:could|should|might|may) have\b|\b(?:would|might|should|must)\b[^,;]*+,?\s*+\Z"
    r"|\b(?:claims|says|pretends|seems|wants|tries|promises) (?:to|that)\b[^,;]*+,?\s*+\Z"
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
    doubt_after=reasons.DOUBT,
)
WITH_A_SCORE = Grammar(
    # "It lacks a structure, with a score of 2.", "(score: 2)"
    assertion=(
        rf"(?P<with>(?<!\w)(?:hence|thus|with|score|rating|rated)(?: of)?{_AS_A_SCORE})SCORE"
        rf"{_AFTER_SCORE}"
    ),
    lead=r"\s*+",
    clause=r"[,;(–—]\s*+\Z",
    before=PARTICIPLE.before,
    doubt=(
        rf"{PARTICIPLE.doubt}"
        r"|\b(?:match|game|half|won|lost|beat|exam|test|season|requested|and|or)\W*\Z"
        r"|\b(?:for (?:example|instance)|e\.g\.|such as)\W*\Z"
    ),
    after=AFTER,
    doubt_after=reasons.DOUBT,
)
ELLIPSIS = Grammar(
    # "The text is clear and gets a score of 4."
    assertion=(
        rf"(?P<ellipsis>\b(?:(?:therefore|thus|hence|consequently|so|also) )?{_RECEIVES}"
        rf"{_ADVERB}{_AS_A_SCORE})SCORE{_AFTER_SCORE}"
    ),
    lead=r"\s*+",
    clause=rf"(?:,\s*+)?\b(?:and(?: (?:so|{_THEREFORE}))?|{_THEREFORE}) ",
    before=rf"{_LEAD_IN}(?:{_THIS_TEXT}|TITLE)",
    doubt=rf"{_DOUBT_BEFORE}|\bneeds?\b|\bshould\b|\bmust\b|\bwants?\b",
    after=AFTER,
    doubt_after=reasons.DOUBT,
)
THAT_SCORES = Grammar(
    # "It is complete, resulting in a clear summary that scores a 4."
    assertion=rf"(?P<relative>\bthat {_RECEIVES}{_AS_A_SCORE})SCORE{_AFTER_SCORE}",
    lead=r"\s*+",
    clause=rf"{_TEXT_NOUN} \Z",
    before=r".*\b(?:resulting in|making (?:it|this)) an?\s(?:[\w-]++ )*+\Z",
    doubt=PARTICIPLE.doubt,
    after=AFTER,
    doubt_after=reasons.DOUBT,
)
FRACTION = Grammar(
    # "Overall, 4 out of 5.", "It is good, 4/5."
    assertion=(
        r"(?P<fraction>)SCORE(?<=[0-9e☆★⭐])"
        # A lookbehind needs a fixed width: \x20 is a single space.
        r"(?:(?<=/[0-9])|(?<=/[0-9][0-9])|(?<=/100)"
        r"|(?<=out\x20of\x20[0-9])|(?<=out\x20of\x20[0-9][0-9])"
        r"|(?<=out\x20of\x20five)|(?<=out\x20of\x20ten))"
        r"\s*+[.!]?[\s)]*+\Z"
    ),
    lead=rf"\s*+(?:(?:{_CONCLUSION}|{_THEREFORE})(?:\s*+[,:–—-]\s*+| ))*+",
    # "in the US. Score: 4/5.", but not "Confidence: 4/5"
    clause=rf"[,(–—] |\b{_SCORE_NOUN}: ",
    doubt=rf"{_DOUBT}|{_REPORTED}|{_MODAL}|\bscale\b",
    says_so="",
)
CONCLUSION = replace(
    FRACTION,
    # "Thus, 4.", "In conclusion: 4", but not the count of "In total, 4."
    assertion=r"(?P<conclusion>)(?=[0-9])SCORE\s*+[.!]?[\s)]*+\Z",
    lead=rf"\s*+(?!in (?:total|all|sum)\b)(?:{_CONCLUSION}|{_THEREFORE})\s*+[,:] ",
    clause=r"(?!)",
)
IT_IS = replace(
    SENTENCE,
    # "This is a solid 4.", "It's a 4 because one name is wrong.", "A clear 4."
    assertion=(
        rf"(?P<it_is>\b(?:it|this|that)(?:['’]s| is){_ADVERB} an? (?:{_SCORE_ADJECTIVE} )*"
        rf"|(?<!\w)an? (?:{_SCORE_ADJECTIVE} )*|(?<!\w)(?:{_SCORE_ADJECTIVE} )+)"
        rf"(?=[0-9])SCORE{_AFTER_SCORE}"
    ),
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
    CONCLUSION,
)

# For scales whose labels are two texts, "A" and "B": "the summary "
_CANDIDATE = (
    r"(?:(?:the )?"
    r"(?:text|summary|response|output|answer|option|assistant|candidate|version) )?"
)
# "clearly ", "still slightly "
_BY_HOW_MUCH = (
    r"(?:(?:clearly|slightly|much|overall|definitely|significantly|marginally|still|therefore"
    r"|thus) )*"
)
# "slightly better", "the winner"
_BETTER = (
    rf"{_BY_HOW_MUCH}(?:the )?{_BY_HOW_MUCH}"
    r"(?:better|best|winner|superior|preferred|preferable|stronger|the better|more STEM\w{0,3})"
    r"(?: (?:one|choice|option|text|summary|response|answer|output))?"
)
_IN_ALL = r"(?: (?:overall|here|in terms of TITLE))?(?![\w%+/-])"
_PREFERRED = replace(
    SENTENCE,
    # "Summary B is better because it names both teams.", "I prefer A.", "The better text is B."
    assertion=(
        rf"(?:(?P<prefers>\bI(?:['’](?:d|ll)| (?:would|will|must))?{_ADVERB} "
        r"(?:prefer|choose|pick|select|go with|vote for) "
        r"|\b(?:(?:the|my) )?"
        r"(?:better|best|stronger|preferred|superior|winning|winner|choice|preference"
        r"|pick)"
        r"(?: (?:one|text|summary|response|answer|output|option))? (?:is|goes to)"
        r"\s*+:? )"
        r"|(?<!\w))"
        rf"{_CANDIDATE}SCORE"
        rf"(?(prefers)(?: (?:over|to) {_CANDIDATE}[A-Z])?"
        rf"| (?:is {_BETTER}(?: (?:than|to) {_CANDIDATE}[A-Z])?"
        rf"|wins|(?:beats|outperforms) {_CANDIDATE}[A-Z])){_IN_ALL}"
    ),
)
_PREFERRED_AFTER_BUT = replace(
    _PREFERRED,
    # "A is good, but B is better."
    clause=r", (?:but|while|and) ",
    doubt=(
        rf"{_DOUBT_BEFORE}"
        r"|\b(?:better|best|prefer\w*|wins?|winner|stronger|superior|ties?|tied|equal\w*|same)\b"
    ),
)
_PREFERRED_AFTER_A_CONCESSION = replace(
    _PREFERRED_AFTER_BUT,
    # "Although A is longer, B is better."
    clause=r", ",
    before=r"\W*(?:although|though|even though|while|despite)\b",
)
_OTHER_IS_WORSE = replace(
    SENTENCE,
    # "B is worse than A.", "Text B is less coherent than text A.", "B is not as good as A."
    assertion=(
        rf"(?<!\w){_CANDIDATE}[A-Z](?: is {_BY_HOW_MUCH}"
        r"(?:(?:worse|weaker|less STEM\w{0,3}) than|inferior to"
        r"|not (?:quite )?as (?:good|strong) as)"
        rf"| isn['’]t (?:quite )?as (?:good|strong) as| loses to) {_CANDIDATE}SCORE{_IN_ALL}"
    ),
)
_TIED = replace(
    SENTENCE,
    # "A and B are tied.", "Both texts are equally good.": SCORE is a word for a tie
    assertion=(
        rf"(?<!\w)(?:{_CANDIDATE}A and {_CANDIDATE}B|both|they"
        r"|(?:both|the two|these) (?:texts|summaries|responses|outputs|answers|options))"
        rf" are {_BY_HOW_MUCH}(?![AB]\b)SCORE{_IN_ALL}"
    ),
)
_AS_GOOD = replace(
    SENTENCE,
    # "A is as good as B."
    assertion=(
        rf"(?<!\w){_CANDIDATE}(?P<text>[AB]) is (?:just )?(?=as good)SCORE"
        rf" {_CANDIDATE}(?!(?P=text))[AB]{_IN_ALL}"
    ),
)
PREFERENCES = (
    _PREFERRED,
    _PREFERRED_AFTER_BUT,
    _PREFERRED_AFTER_A_CONCESSION,
    _OTHER_IS_WORSE,
    _TIED,
    _AS_GOOD,
)
# For scales whose labels are words: "The text is irrelevant to the question.", "It passes."
IS_LABEL = replace(
    SENTENCE,
    assertion=(
        rf"(?P<is>\b(?:{_THIS_TEXT}|TITLE) (?:is (?:a )?|(?=(?:passes|fails)\b))"
        r"(?:(?:clearly|completely|entirely|fully|therefore|thus|overall|also|definitely"
        r"|indeed|simply|totally) )*)"
        r"SCORE"
        r"(?: (?:to|for|with) (?:the|this) "
        r"(?:question|prompt|topic|task|query|request|source|user['’]s (?:question|request)))?"
        r"(?![\w%+/-])"
    ),
)
