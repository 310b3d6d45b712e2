"""What there is to say when a source outside gives nothing, or too much: in both languages, with the mend."""

from __future__ import annotations

_NOTES = {
    "no key": ("TMDB was not asked: {setting} is not set.", "没有查询 TMDB：未设置 {setting}。"),
    "refused": ("TMDB refused the key ({said}) Is {key} right?", "TMDB 拒绝了密钥（{said}）请检查 {key}。"),
    "busy": (
        "TMDB is asked too often ({said}) Ask again a little later.",
        "对 TMDB 的查询太频繁（{said}）请稍后再试。",
    ),
    "in trouble": (
        "TMDB is in trouble ({said}) Ask again a little later.",
        "TMDB 暂时有故障（{said}）请稍后再试。",
    ),
    "no answer": ("That is no answer of TMDB's ({said}) Is {url} right?", "这不是 TMDB 的回答（{said}）请检查 {url}。"),
    "failed": ("TMDB gave no usable answer ({said})", "TMDB 没有给出可用的回答（{said}）"),
    "unreachable": (
        "TMDB cannot be reached ({said}) Is there a network, and is {url} right?",
        "无法连接 TMDB（{said}）请检查网络和 {url}。",
    ),
    "slow": (
        "TMDB did not answer within {seconds} s. Raise {setting}, or ask again.",
        "TMDB 在 {seconds} 秒内没有答复。请调大 {setting}，或稍后再试。",
    ),
    "unknown": ("TMDB knows nothing of the name “{name}”.", "TMDB 没有名为“{name}”的条目。"),
    "ambiguous": (
        "“{name}” names several films on TMDB ({years}), and nothing tells which one is meant.",
        "TMDB 上有多部名为“{name}”的影片（{years}），无法判断所指是哪一部。",
    ),
    "no source": (
        "There is no source outside for {kb}: its vocabulary asks for none.",
        "{kb} 没有可查询的外部来源：它的词汇表没有指定。",
    ),
    "no name": ("The question names nothing to ask {source} for.", "问题里没有可以向 {source} 查询的名称。"),
}


def note(what: str, language: str, **told: str) -> str:
    """A note in a language.

    >>> note("unknown", "en", name="Parasite"), note("unknown", "zh", name="寄生虫")
    ('TMDB knows nothing of the name “Parasite”.', 'TMDB 没有名为“寄生虫”的条目。')
    """
    english, chinese = _NOTES[what]
    return (chinese if language == "zh" else english).format(**told)
