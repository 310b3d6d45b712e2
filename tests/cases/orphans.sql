-- What may not be in an index: each query finds nothing.
SELECT 1 FROM relations WHERE source NOT IN (SELECT entity_id FROM entities);
SELECT 1 FROM relations WHERE target NOT IN (SELECT entity_id FROM entities);
SELECT 1 FROM relations WHERE chunk_id NOT IN (SELECT chunk_id FROM passages);
SELECT 1 FROM relations WHERE relation_id != source || '|' || type || '|' || target;
SELECT 1 FROM mentions WHERE chunk_id NOT IN (SELECT chunk_id FROM passages);
SELECT 1 FROM mentions WHERE entity_id NOT IN (SELECT entity_id FROM entities);
SELECT 1 FROM vectors WHERE key NOT IN (SELECT vector FROM passages);
SELECT 1 FROM names WHERE entity_id NOT IN (SELECT entity_id FROM entities);
SELECT 1 FROM entities WHERE doc_id NOT IN (SELECT doc_id FROM documents);
SELECT 1 FROM documents WHERE 'doc:' || doc_id NOT IN (SELECT entity_id FROM entities);
SELECT 1 FROM homes WHERE community_id NOT IN (SELECT community_id FROM communities);
SELECT 1 FROM entities WHERE entity_id NOT IN (SELECT entity_id FROM mentions UNION SELECT source FROM relations UNION SELECT target FROM relations);
SELECT 1 FROM communities, json_each(communities.value, '$.doc_ids') AS d WHERE d.value NOT IN (SELECT doc_id FROM documents);
