"""What is said of a knowledge base: its counts, its coverage, what belongs to nothing; and of indexing."""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, tuple[str, str]] = {
    "kb_documents": ("documents", "文档"),
    "kb_passages": ("passages", "段落"),
    "kb_entities": ("entities", "实体"),
    "kb_relations": ("relations", "关系"),
    "kb_communities": ("communities", "社区"),
    "kb_search": ("search", "检索方式"),
    "kb_behind": ("behind the index", "落后于索引"),
    "kb_own_files": ("files of its own", "本地文件"),
    "kb_generation": ("generation {n}", "第 {n} 代"),
    "kb_languages": ("Languages", "语言"),
    "kb_coverage": ("What covers its documents", "文档的覆盖情况"),
    "kb_covered": ("documents with", "具备"),
    "kb_with_title": ("a title", "标题"),
    "kb_with_entities": ("entities", "实体"),
    "kb_with_links": ("links to other documents", "指向其他文档的链接"),
    "kb_with_vectors": ("vectors of all passages", "全部段落的向量"),
    "kb_with_community": ("a community", "所属社区"),
    "kb_growth": ("Growth by day", "按天增长"),
    "kb_day": ("day (UTC)", "日期（UTC）"),
    "kb_total": ("in all", "累计"),
    "kb_before": ("before this was noted", "此前未记录"),
    "kb_orphans": ("What belongs to nothing", "孤立项"),
    "kb_duplicates": ("What is there twice", "重复内容"),
    "kb_what": ("what", "项目"),
    "kb_count": ("how many", "数量"),
    "kb_examples": ("examples", "示例"),
    "kb_documents_without_passage": ("documents without a passage", "没有段落的文档"),
    "kb_passages_without_entity": ("passages that name nobody", "没有实体的段落"),
    "kb_passages_without_vector": ("passages without a vector", "没有向量的段落"),
    "kb_entities_without_passage": (
        "entities that no passage names (of fields, they are in order)",
        "没有段落提到的实体（来自字段者属正常）",
    ),
    "kb_entities_alone": ("entities that nothing names or relates to", "既无段落又无关系的实体"),
    "kb_vectors_without_passage": ("vectors without a passage", "没有段落的向量"),
    "kb_same": ("passages with the text of another", "文字完全相同的段落"),
    "kb_nearly_same": ("passages that nearly repeat another", "几乎重复的段落"),
    "kb_not_compared": (
        "{n} passages are too short to compare, or of an older version.",
        "{n} 个段落过短或来自旧版本，未作比较。",
    ),
    "kb_fields": ("Fields: {n}", "字段：{n}"),
    "kb_field": ("field", "字段"),
    "kb_sources": ("Files: {n}", "文件：{n}"),
    "kb_source": ("file", "文件"),
}
