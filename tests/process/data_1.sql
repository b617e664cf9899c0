-- files: admin.token lock
-- agents/Counter/ca/ca978112ca1bbdcafac231b39a23dc4d.db
PRAGMA user_version=0;
BEGIN TRANSACTION;
CREATE TABLE cf_agents_answers(key TEXT PRIMARY KEY NOT NULL, fingerprint TEXT NOT NULL, code INTEGER, body TEXT NOT NULL, bytes INTEGER NOT NULL, expires_at INTEGER NOT NULL);
INSERT INTO "cf_agents_answers" VALUES('2998438c-6f5d-459a-bf89-da3c7c67ad05','6bf6771e7fed46e88dd342277e407d09676f8ee175d82d39715fc3f7ea372098',0,'41',38,1796056051712);
CREATE TABLE cf_agents_meta(key TEXT PRIMARY KEY NOT NULL, value) WITHOUT ROWID;
INSERT INTO "cf_agents_meta" VALUES('class','Counter');
INSERT INTO "cf_agents_meta" VALUES('incarnation','542951b5146cffaf3d0a5045985fae25');
INSERT INTO "cf_agents_meta" VALUES('name','a');
INSERT INTO "cf_agents_meta" VALUES('schema',1);
CREATE TABLE cf_agents_state(id TEXT PRIMARY KEY NOT NULL, state TEXT) WITHOUT ROWID;
INSERT INTO "cf_agents_state" VALUES('cf_state_row_id','{"count":41}');
CREATE INDEX cf_agents_answers_expiry ON cf_agents_answers(expires_at, bytes);
COMMIT;
-- agents/DurableAgent/2e/2e7d2c03a9507ae265ecf5b5356885a5.db
PRAGMA user_version=0;
BEGIN TRANSACTION;
CREATE TABLE cf_agents_answers(key TEXT PRIMARY KEY NOT NULL, fingerprint TEXT NOT NULL, code INTEGER, body TEXT NOT NULL, bytes INTEGER NOT NULL, expires_at INTEGER NOT NULL);
INSERT INTO "cf_agents_answers" VALUES('89959a64-dd21-402a-8cce-5e1a3d3582a5','29797a14359f9aa7db24e773031d62003745e56b04d4a08966be9179b86ca80f',0,'{"accepted":true,"record":{"attempts":0,"completed_at":null,"created_at":1795969651721,"dead":false,"error":null,"failures":0,"id":"90be81b3-3627-4930-8521-7e9cd1b597c2","input":{"failures":0,"hook":"continue","max_retries":0,"ms":30,"steps":1000000},"key":"key","max_retries":0,"metadata":null,"name":"walk","next_at":null,"result":null,"snapshot":null,"started_at":null,"status":"pending"}}',428,1796056051724);
INSERT INTO "cf_agents_answers" VALUES('a591b3a2-2ff1-4c04-a950-412ee5a942f0','5036a1ba7462e01c5689baf96833a291e9a325ca4dd352cc2a74029ce5dab425',0,'"aeb7c76b-b0ab-4d0a-a290-76acf78746c9"',74,1796056051727);
INSERT INTO "cf_agents_answers" VALUES('3d48c58b-1bdc-4556-8f9f-ddac251da3b2','717db9535b837f3fb759783ad086d7f67e55445cb8627f8f1ab5912138b399e2',0,'"79644d30-b916-4570-aa7c-42a40ef4129b"',74,1796056051730);
INSERT INTO "cf_agents_answers" VALUES('ea3f27cb-8379-4bbf-b06c-232c4a83fbeb','5dd9c79685a59363d33f9d0614e4b0de1bc786d546fc1af45744f7a5e495e9df',0,'',36,1796056051734);
INSERT INTO "cf_agents_answers" VALUES('9ce5a9a7-2966-4fbc-8832-9e9b0935db41','82f2484aa3ac1229adc5974c04c121ba68d6f135015ef5307fe2e34b095e1fec',0,'["walk 1","walk 2","walk 3","walk 4","walk 5","walk 6","walk 7","walk 8","walk 9","walk 10","walk 11","walk 12","walk 13","walk 14","walk 15","walk 16","walk 17","walk 18","walk 19","walk 20","walk 21","walk 22","walk 23","walk 24","walk 25","walk 26","walk 27","walk 28","walk 29","walk 30","walk 31","walk 32"]',348,1796056052730);
INSERT INTO "cf_agents_answers" VALUES('4758e05c-fea1-4d66-956b-f48f5f00350e','5499c3b0d87d4d55618195dc307bdce3dea40a575f6240e7d626773580c15977',0,'[{"attempts":3,"callback":"hopeless","created_at":1795969651730,"id":"79644d30-b916-4570-aa7c-42a40ef4129b","last_error":"hopeless","next_at":null,"payload":"payload","retry":{"base_delay_ms":20,"max_attempts":3,"max_delay_ms":20},"state":"dead"}]',283,1796056052733);
CREATE TABLE cf_agents_job_documents(job INTEGER NOT NULL, part INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY(job, part)) WITHOUT ROWID;
INSERT INTO "cf_agents_job_documents" VALUES(1,1,'{"failures":0,"hook":"continue","max_retries":0,"ms":30,"steps":1000000}');
INSERT INTO "cf_agents_job_documents" VALUES(1,2,'null');
INSERT INTO "cf_agents_job_documents" VALUES(1,3,'33');
INSERT INTO "cf_agents_job_documents" VALUES(2,1,'"ticked"');
INSERT INTO "cf_agents_job_documents" VALUES(3,1,'"payload"');
INSERT INTO "cf_agents_job_documents" VALUES(3,6,'hopeless');
CREATE TABLE cf_agents_jobs(seq INTEGER PRIMARY KEY, kind INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0, due_at INTEGER, id TEXT NOT NULL, name TEXT NOT NULL, key TEXT, created_at INTEGER NOT NULL, started_at INTEGER, ended_at INTEGER, next_at INTEGER, set_at INTEGER, attempts INTEGER NOT NULL DEFAULT 0, claims INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0, interruptions INTEGER NOT NULL DEFAULT 0, fatal_attempts INTEGER NOT NULL DEFAULT 0, max_attempts INTEGER NOT NULL DEFAULT 0, retry_base INTEGER NOT NULL DEFAULT 0, retry_cap INTEGER NOT NULL DEFAULT 0, dead INTEGER NOT NULL DEFAULT 0, has_failed INTEGER NOT NULL DEFAULT 0, status TEXT, keep TEXT, trace TEXT, parent TEXT, type TEXT, length_ms INTEGER, cron TEXT, time_zone TEXT, fixed_rate INTEGER, misfire INTEGER, misfire_limit INTEGER, overlap INTEGER, paused INTEGER, missing INTEGER, running INTEGER, scheduled_for INTEGER, owed INTEGER, missed INTEGER, begun_at INTEGER, catch_up_until INTEGER, last_run INTEGER, lane TEXT, failing_since INTEGER);
INSERT INTO "cf_agents_jobs" VALUES(1,2,1,NULL,'90be81b3-3627-4930-8521-7e9cd1b597c2','walk','key',1795969651721,1795969651721,NULL,0,1795969651721,0,0,0,0,0,0,20,300000,0,0,'running',NULL,'00-62de2e6732150b1e6ab453a4d019ec28-7e441fbd1a90f01e-01',NULL,'kept',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "cf_agents_jobs" VALUES(2,3,0,1797969651727,'aeb7c76b-b0ab-4d0a-a290-76acf78746c9','note','702ccc10dc208159fa69da545623f745b4a9e1dd995d1696f946009eebf6ed44',1795969651727,NULL,NULL,1797969651727,1795969651727,0,0,0,0,0,3,20,20,0,0,NULL,NULL,'00-da758d3379bc76c2bbc8b6edc0ea51af-6460e63364b5323f-01',NULL,'interval',2000000000,NULL,NULL,0,0,10,0,0,0,0,1797969651727,0,0,0,0,NULL,NULL,NULL);
INSERT INTO "cf_agents_jobs" VALUES(3,4,2,NULL,'79644d30-b916-4570-aa7c-42a40ef4129b','hopeless',NULL,1795969651730,NULL,NULL,1795969651765,1795969651765,0,3,3,0,0,3,20,20,1,0,NULL,NULL,'00-58199bed6200b495d739385ed54d70af-4810ed91ed943c92-01',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "cf_agents_jobs" VALUES(4,8,2,NULL,'','the contract is signed',NULL,1795969651734,NULL,NULL,0,0,0,0,0,0,0,0,0,0,1,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE cf_agents_meta(key TEXT PRIMARY KEY NOT NULL, value) WITHOUT ROWID;
INSERT INTO "cf_agents_meta" VALUES('class','DurableAgent');
INSERT INTO "cf_agents_meta" VALUES('incarnation','4d65d99707c1d740adf83b41ef136513');
INSERT INTO "cf_agents_meta" VALUES('name','c');
INSERT INTO "cf_agents_meta" VALUES('schema',1);
CREATE TABLE journal (entry TEXT);
INSERT INTO "journal" VALUES('walk 1');
INSERT INTO "journal" VALUES('walk 2');
INSERT INTO "journal" VALUES('walk 3');
INSERT INTO "journal" VALUES('walk 4');
INSERT INTO "journal" VALUES('walk 5');
INSERT INTO "journal" VALUES('walk 6');
INSERT INTO "journal" VALUES('walk 7');
INSERT INTO "journal" VALUES('walk 8');
INSERT INTO "journal" VALUES('walk 9');
INSERT INTO "journal" VALUES('walk 10');
INSERT INTO "journal" VALUES('walk 11');
INSERT INTO "journal" VALUES('walk 12');
INSERT INTO "journal" VALUES('walk 13');
INSERT INTO "journal" VALUES('walk 14');
INSERT INTO "journal" VALUES('walk 15');
INSERT INTO "journal" VALUES('walk 16');
INSERT INTO "journal" VALUES('walk 17');
INSERT INTO "journal" VALUES('walk 18');
INSERT INTO "journal" VALUES('walk 19');
INSERT INTO "journal" VALUES('walk 20');
INSERT INTO "journal" VALUES('walk 21');
INSERT INTO "journal" VALUES('walk 22');
INSERT INTO "journal" VALUES('walk 23');
INSERT INTO "journal" VALUES('walk 24');
INSERT INTO "journal" VALUES('walk 25');
INSERT INTO "journal" VALUES('walk 26');
INSERT INTO "journal" VALUES('walk 27');
INSERT INTO "journal" VALUES('walk 28');
INSERT INTO "journal" VALUES('walk 29');
INSERT INTO "journal" VALUES('walk 30');
INSERT INTO "journal" VALUES('walk 31');
INSERT INTO "journal" VALUES('walk 32');
INSERT INTO "journal" VALUES('walk 33');
CREATE INDEX cf_agents_jobs_due ON cf_agents_jobs(kind, state, due_at);
CREATE UNIQUE INDEX cf_agents_jobs_id ON cf_agents_jobs(id, kind);
CREATE INDEX cf_agents_jobs_key ON cf_agents_jobs(key, kind) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX cf_agents_jobs_fiber_key ON cf_agents_jobs(key) WHERE kind = 2;
CREATE INDEX cf_agents_jobs_kept ON cf_agents_jobs(keep, ended_at) WHERE keep IS NOT NULL;
CREATE INDEX cf_agents_jobs_kind ON cf_agents_jobs(kind);
CREATE INDEX cf_agents_jobs_open ON cf_agents_jobs(kind) WHERE kind = 2 AND ended_at IS NULL;
CREATE INDEX cf_agents_jobs_parent ON cf_agents_jobs(parent) WHERE parent IS NOT NULL;
CREATE INDEX cf_agents_jobs_lane ON cf_agents_jobs(lane) WHERE lane IS NOT NULL AND ended_at IS NULL;
CREATE INDEX cf_agents_jobs_time ON cf_agents_jobs(coalesce(nullif(next_at, 0), 9223372036854775807)) WHERE kind = 3 AND parent IS NULL;
CREATE TRIGGER cf_agents_jobs_gone AFTER DELETE ON cf_agents_jobs BEGIN DELETE FROM cf_agents_job_documents WHERE job = old.seq; END;
CREATE INDEX cf_agents_answers_expiry ON cf_agents_answers(expires_at, bytes);
COMMIT;
-- agents/SessionCache/3e/3e23e8160039594a33894f6564e1b134.db
PRAGMA user_version=0;
BEGIN TRANSACTION;
CREATE TABLE cf_agents_answers(key TEXT PRIMARY KEY NOT NULL, fingerprint TEXT NOT NULL, code INTEGER, body TEXT NOT NULL, bytes INTEGER NOT NULL, expires_at INTEGER NOT NULL);
INSERT INTO "cf_agents_answers" VALUES('18c87f48-29ca-4a96-8883-3b0c9bb1ca1f','303f0629260269864c6ded6cd832d904a1e00c7dad733b8e726390992e5b50dd',0,'',36,1796056051716);
CREATE TABLE cf_agents_kv(key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL);
INSERT INTO "cf_agents_kv" VALUES('draft','{"expires_at_ms":2095969651715,"set_at_ms":1795969651715,"value":{"text":"Dear Ada"}}');
CREATE TABLE cf_agents_kv_usage(keys INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO "cf_agents_kv_usage" VALUES(1,90);
CREATE TABLE cf_agents_meta(key TEXT PRIMARY KEY NOT NULL, value) WITHOUT ROWID;
INSERT INTO "cf_agents_meta" VALUES('class','SessionCache');
INSERT INTO "cf_agents_meta" VALUES('incarnation','d4743cc67c9cebfe67737efc19e29190');
INSERT INTO "cf_agents_meta" VALUES('name','b');
INSERT INTO "cf_agents_meta" VALUES('schema',1);
CREATE INDEX cf_agents_answers_expiry ON cf_agents_answers(expires_at, bytes);
COMMIT;
-- agents/talks/18/18ac3e7343f016890c510e93f9352611.db
PRAGMA user_version=0;
BEGIN TRANSACTION;
CREATE TABLE cf_agents_job_documents(job INTEGER NOT NULL, part INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY(job, part)) WITHOUT ROWID;
INSERT INTO "cf_agents_job_documents" VALUES(1,1,'{"turn":"0a302249-170e-43bc-83bb-ccfff03c3cda"}');
INSERT INTO "cf_agents_job_documents" VALUES(1,2,'null');
CREATE TABLE cf_agents_jobs(seq INTEGER PRIMARY KEY, kind INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0, due_at INTEGER, id TEXT NOT NULL, name TEXT NOT NULL, key TEXT, created_at INTEGER NOT NULL, started_at INTEGER, ended_at INTEGER, next_at INTEGER, set_at INTEGER, attempts INTEGER NOT NULL DEFAULT 0, claims INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0, interruptions INTEGER NOT NULL DEFAULT 0, fatal_attempts INTEGER NOT NULL DEFAULT 0, max_attempts INTEGER NOT NULL DEFAULT 0, retry_base INTEGER NOT NULL DEFAULT 0, retry_cap INTEGER NOT NULL DEFAULT 0, dead INTEGER NOT NULL DEFAULT 0, has_failed INTEGER NOT NULL DEFAULT 0, status TEXT, keep TEXT, trace TEXT, parent TEXT, type TEXT, length_ms INTEGER, cron TEXT, time_zone TEXT, fixed_rate INTEGER, misfire INTEGER, misfire_limit INTEGER, overlap INTEGER, paused INTEGER, missing INTEGER, running INTEGER, scheduled_for INTEGER, owed INTEGER, missed INTEGER, begun_at INTEGER, catch_up_until INTEGER, last_run INTEGER, lane TEXT, failing_since INTEGER);
INSERT INTO "cf_agents_jobs" VALUES(1,2,3,NULL,'bda1b446-de0a-436a-abfa-538567d532dc','chat.turn','chat:0a302249-170e-43bc-83bb-ccfff03c3cda',1795969651739,1795969651739,1795969652718,0,1795969651739,0,0,0,0,0,0,1000,300000,0,0,'completed','completed','00-d7541e2a837858396dff6163946b6cba-359c98af174a0426-01',NULL,'kept',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE cf_agents_kv(key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL);
INSERT INTO "cf_agents_kv" VALUES('hearth.chat.day','{"day":20786,"spent":{"calls":1,"cost":0,"tokens":21}}');
CREATE TABLE cf_agents_kv_usage(keys INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO "cf_agents_kv_usage" VALUES(1,69);
CREATE TABLE cf_agents_meta(key TEXT PRIMARY KEY NOT NULL, value) WITHOUT ROWID;
INSERT INTO "cf_agents_meta" VALUES('class','talks');
INSERT INTO "cf_agents_meta" VALUES('incarnation','8cd8723e3fdd294f002c110850aed97a');
INSERT INTO "cf_agents_meta" VALUES('name','d');
INSERT INTO "cf_agents_meta" VALUES('schema',1);
CREATE TABLE cf_agents_operation_documents(operation INTEGER NOT NULL, part INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY(operation, part)) WITHOUT ROWID;
INSERT INTO "cf_agents_operation_documents" VALUES(1,1,'{"call":0,"turn":"0a302249-170e-43bc-83bb-ccfff03c3cda"}');
INSERT INTO "cf_agents_operation_documents" VALUES(1,2,'{"failure":"","finish_reason":"stop","has_content":true,"is_paused":false,"is_stalled":false,"text":"","usage":{"input_tokens":1,"output_tokens":20,"total_tokens":21}}');
INSERT INTO "cf_agents_operation_documents" VALUES(1,3,X'7B2263616E5F726573756D65223A66616C73652C22646973706174636865645F6174223A313739353936393635313734362C2266696E6765727072696E74223A2236383064306437643666363035326463623662626661663632316366376238383063343662643137623537633833633765626639623339356364343963323963222C22726571756573745F6964223A6E756C6C2C22737461747573223A3230302C2277686F6C65223A66616C73657D');
CREATE TABLE cf_agents_operations(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, effect INTEGER NOT NULL, state TEXT NOT NULL, root TEXT, scope TEXT, key TEXT, likeness TEXT NOT NULL, n INTEGER NOT NULL DEFAULT 0, behind INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 1, started_at INTEGER NOT NULL, horizon_at INTEGER, settled_at INTEGER, settled_by TEXT, note TEXT, told INTEGER, cost INTEGER NOT NULL DEFAULT 0, day INTEGER, by_request INTEGER NOT NULL DEFAULT 0);
INSERT INTO "cf_agents_operations" VALUES(1,'790d41dcbc409570a704b3af0c1a4d49535eda2147c6d7786b3a745bad35a584','chat.model',4,'completed','bda1b446-de0a-436a-abfa-538567d532dc','bda1b446-de0a-436a-abfa-538567d532dc',NULL,'13e81356d89a9056af283e2a2592c0af3dc9af6d2a7b80bc06ad49ce0f56968e',1,0,1,1795969651744,NULL,1795969652710,NULL,NULL,NULL,21,NULL,1);
CREATE TABLE chat_calls(message INTEGER NOT NULL, call TEXT NOT NULL, key INTEGER NOT NULL, PRIMARY KEY(message, call)) WITHOUT ROWID;
INSERT INTO "chat_calls" VALUES(2,'',-6134357516196181483);
CREATE TABLE chat_log(stream TEXT NOT NULL, seq INTEGER NOT NULL, ended INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY(stream, seq)) WITHOUT ROWID;
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',1,0,'0 4 1 2
{"messageId":"37fde6ef-b613-4fc9-a2ca-65daec3cd91b","type":"start"}
{"type":"start-step"}
{"id":"t0","type":"text-start"}
{"delta":"word1","id":"t0","type":"text-delta"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',2,0,'4 5 1 3
{"delta":" word2","id":"t0","type":"text-delta"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',3,0,'5 6 1 4
{"delta":" word3","id":"t0","type":"text-delta"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',4,0,'6 7 1 5
{"delta":" word4","id":"t0","type":"text-delta"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',5,0,'7 8 1 6
{"delta":" word5","id":"t0","type":"text-delta"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',6,0,'8 9 1 7
{"delta":" word6","id":"t0","type":"text-delta"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',7,0,'9 10 1 8
{"delta":" word7","id":"t0","type":"text-delta"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',8,0,'10 11 1 9
{"delta":" word8","id":"t0","type":"text-delta"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',9,0,'11 12 1 10
{"delta":" word9","id":"t0","type":"text-delta"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',10,0,'12 13 1 11
{"delta":" word10","id":"t0","type":"text-delta"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',11,0,'13 14 1 12
{"delta":" word11","id":"t0","type":"text-delta"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',12,0,'14 15 1 13
{"delta":" word12","id":"t0","type":"text-delta"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',13,0,'15 16 1 14
{"delta":" word13","id":"t0","type":"text-delta"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',14,0,'16 17 1 15
{"delta":" word14","id":"t0","type":"text-delta"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',15,0,'17 18 1 16
{"delta":" word15","id":"t0","type":"text-delta"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',16,0,'18 19 1 17
{"delta":" word16","id":"t0","type":"text-delta"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',17,0,'19 20 1 18
{"delta":" word17","id":"t0","type":"text-delta"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',18,0,'20 21 1 19
{"delta":" word18","id":"t0","type":"text-delta"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',19,0,'21 22 1 20
{"delta":" word19","id":"t0","type":"text-delta"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',20,0,'22 23 1 21
{"delta":" word20","id":"t0","type":"text-delta"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',21,0,'23 25 1 24
{"id":"t0","type":"text-end"}
{"type":"finish-step"}
');
INSERT INTO "chat_log" VALUES('0a302249-170e-43bc-83bb-ccfff03c3cda',22,0,'25 26 1 24
{"messageMetadata":{"finishReason":"stop"},"type":"finish"}
');
CREATE TABLE chat_messages(seq INTEGER PRIMARY KEY, id TEXT NOT NULL, role TEXT NOT NULL, hash INTEGER NOT NULL, sent INTEGER NOT NULL, split INTEGER NOT NULL, pending INTEGER NOT NULL, body TEXT NOT NULL);
INSERT INTO "chat_messages" VALUES(1,'45d1c23c-9f20-45a3-9fe2-adb2f1daab91','user',3402354062296269801,3402354062296269801,0,0,'{"id":"45d1c23c-9f20-45a3-9fe2-adb2f1daab91","parts":[{"text":"Hello","type":"text"}],"role":"user"}');
INSERT INTO "chat_messages" VALUES(2,'37fde6ef-b613-4fc9-a2ca-65daec3cd91b','assistant',-7606817061478017682,-7606817061478017682,0,0,'{"id":"37fde6ef-b613-4fc9-a2ca-65daec3cd91b","metadata":{"finishReason":"stop"},"parts":[{"type":"step-start"},{"state":"done","text":"word1 word2 word3 word4 word5 word6 word7 word8 word9 word10 word11 word12 word13 word14 word15 word16 word17 word18 word19 word20","type":"text"}],"role":"assistant"}');
CREATE TABLE chat_pieces(message INTEGER NOT NULL, piece INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY(message, piece)) WITHOUT ROWID;
CREATE TABLE chat_turns(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, state TEXT NOT NULL, origin_ids TEXT NOT NULL, body TEXT, client_tools TEXT, key TEXT UNIQUE, owner TEXT NOT NULL, asked_by TEXT NOT NULL, message_id TEXT NOT NULL, not_before INTEGER NOT NULL, created INTEGER NOT NULL, began INTEGER, ended INTEGER, stopping INTEGER NOT NULL DEFAULT 0, step INTEGER NOT NULL DEFAULT 0, work INTEGER NOT NULL DEFAULT 0, progress INTEGER NOT NULL DEFAULT 0, spent TEXT NOT NULL DEFAULT '{}', plan TEXT NOT NULL DEFAULT '{}', incident TEXT NOT NULL DEFAULT '{}', stash TEXT, error TEXT NOT NULL DEFAULT '');
INSERT INTO "chat_turns" VALUES(1,'0a302249-170e-43bc-83bb-ccfff03c3cda','program','completed','["45d1c23c-9f20-45a3-9fe2-adb2f1daab91"]',NULL,NULL,NULL,'','','37fde6ef-b613-4fc9-a2ca-65daec3cd91b',1795969651739,1795969651739,1795969651742,1795969652713,0,1,22,20,'{"calls":1,"cost":0,"tokens":21}','{"base_parts":0,"compactions":0,"earlier_calls":0,"finish_reason":"stop","generated":1,"is_cut":false,"is_handed_over":false,"is_paused":false,"is_resumable":false,"open_text":"","overflows":0,"purpose":"","usage":{"input_tokens":1,"output_tokens":20,"total_tokens":21},"whole_calls":0}','{"attempt":0,"exhausted":"","failed_calls":0,"first_seen_ms":0,"first_work":0,"is_shown":false,"last_counted_ms":0,"last_progress_ms":0,"not_before_ms":0,"progress":0}',NULL,'');
CREATE INDEX chat_messages_by_id ON chat_messages(id, hash, sent);
CREATE INDEX chat_messages_pending ON chat_messages(seq) WHERE pending;
CREATE INDEX chat_calls_by_call ON chat_calls(call, message);
CREATE INDEX chat_calls_by_key ON chat_calls(key, message);
CREATE TRIGGER chat_messages_gone AFTER DELETE ON chat_messages BEGIN DELETE FROM chat_pieces WHERE message = OLD.seq; DELETE FROM chat_calls WHERE message = OLD.seq; END;
CREATE INDEX chat_turns_line ON chat_turns(seq) WHERE state IN ('queued', 'running');
CREATE INDEX cf_agents_jobs_due ON cf_agents_jobs(kind, state, due_at);
CREATE UNIQUE INDEX cf_agents_jobs_id ON cf_agents_jobs(id, kind);
CREATE INDEX cf_agents_jobs_key ON cf_agents_jobs(key, kind) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX cf_agents_jobs_fiber_key ON cf_agents_jobs(key) WHERE kind = 2;
CREATE INDEX cf_agents_jobs_kept ON cf_agents_jobs(keep, ended_at) WHERE keep IS NOT NULL;
CREATE INDEX cf_agents_jobs_kind ON cf_agents_jobs(kind);
CREATE INDEX cf_agents_jobs_open ON cf_agents_jobs(kind) WHERE kind = 2 AND ended_at IS NULL;
CREATE INDEX cf_agents_jobs_parent ON cf_agents_jobs(parent) WHERE parent IS NOT NULL;
CREATE INDEX cf_agents_jobs_lane ON cf_agents_jobs(lane) WHERE lane IS NOT NULL AND ended_at IS NULL;
CREATE INDEX cf_agents_jobs_time ON cf_agents_jobs(coalesce(nullif(next_at, 0), 9223372036854775807)) WHERE kind = 3 AND parent IS NULL;
CREATE TRIGGER cf_agents_jobs_gone AFTER DELETE ON cf_agents_jobs BEGIN DELETE FROM cf_agents_job_documents WHERE job = old.seq; END;
CREATE INDEX cf_agents_operations_scope ON cf_agents_operations(scope, likeness, behind, n) WHERE scope IS NOT NULL;
CREATE INDEX cf_agents_operations_state ON cf_agents_operations(state, settled_at);
CREATE INDEX cf_agents_operations_untold ON cf_agents_operations(told) WHERE told IS NOT NULL;
CREATE TRIGGER cf_agents_operations_gone AFTER DELETE ON cf_agents_operations BEGIN DELETE FROM cf_agents_operation_documents WHERE operation = old.seq; END;
COMMIT;
-- audit.db
PRAGMA user_version=1;
BEGIN TRANSACTION;
CREATE TABLE entries(  id INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, event TEXT NOT NULL,  actor TEXT NOT NULL, class TEXT NOT NULL, agent TEXT NOT NULL, detail TEXT NOT NULL,  kind INTEGER NOT NULL);
INSERT INTO "entries" VALUES(1,1795969651435,'PluginLoaded','server','','','{"classes":2,"file":"/srv/hearth/plugins/assistant.so","generation":1,"plugin":"assistant","sha256":"2b1e7239d98c0ae9c3f59bc10a61bc32f0a80d589f17130eb9b4c791053b626e","version":"1.0.0"}',0);
INSERT INTO "entries" VALUES(2,1795969651505,'PluginLoaded','server','','','{"classes":1,"file":"/srv/hearth/plugins/counter.so","generation":2,"plugin":"counter","sha256":"951762210a1a725ddab8bf34f3fbfedea10004d0dcc503d969d8055e789d6f94","version":"1.0.0"}',0);
INSERT INTO "entries" VALUES(3,1795969651602,'PluginLoaded','server','','','{"classes":1,"file":"/srv/hearth/plugins/durable-agent.so","generation":3,"plugin":"durable-agent","sha256":"18be64e173270e8f755c99f8f1748682f2c6c14617e1e62d137a1d051217bca0","version":"1.0.0"}',0);
INSERT INTO "entries" VALUES(4,1795969651668,'PluginLoaded','server','','','{"classes":1,"file":"/srv/hearth/plugins/session-cache.so","generation":4,"plugin":"session-cache","sha256":"ad8048d71c6a746e1c324b5fe12a35221e6430fa6bfd483fdea6fd588fba38d7","version":"1.0.0"}',0);
INSERT INTO "entries" VALUES(5,1795969651695,'ServerReady','server','','','{"address":"127.0.0.1:36809","classes":5,"data":"/srv/hearth/data","shards":2}',0);
INSERT INTO "entries" VALUES(6,1795969651710,'ObjectCreated','server','Counter','a','',2);
INSERT INTO "entries" VALUES(7,1795969651711,'ObjectWoken','server','Counter','a','',2);
INSERT INTO "entries" VALUES(8,1795969651715,'ObjectCreated','server','SessionCache','b','',2);
INSERT INTO "entries" VALUES(9,1795969651715,'ObjectWoken','server','SessionCache','b','',2);
INSERT INTO "entries" VALUES(10,1795969651719,'ObjectCreated','server','DurableAgent','c','',2);
INSERT INTO "entries" VALUES(11,1795969651720,'ObjectWoken','server','DurableAgent','c','',2);
INSERT INTO "entries" VALUES(12,1795969651737,'ObjectCreated','server','talks','d','',2);
INSERT INTO "entries" VALUES(13,1795969651739,'ObjectWoken','server','talks','d','',2);
INSERT INTO "entries" VALUES(14,1795969652768,'AdminEvicted','administrator','Counter','a','',1);
INSERT INTO "entries" VALUES(15,1795969652772,'ServerStopping','server','','','',0);
INSERT INTO "entries" VALUES(16,1795969652774,'ObjectHibernated','server','Counter','a','{"reason":"admin"}',2);
INSERT INTO "entries" VALUES(17,1795969652790,'ObjectHibernated','server','talks','d','{"reason":"shutdown"}',2);
INSERT INTO "entries" VALUES(18,1795969652814,'ObjectHibernated','server','DurableAgent','c','{"reason":"shutdown"}',2);
INSERT INTO "entries" VALUES(19,1795969652834,'ObjectHibernated','server','SessionCache','b','{"reason":"shutdown"}',2);
CREATE INDEX entries_of_agents ON entries(class, agent, id);
CREATE INDEX entries_of_kinds ON entries(kind, id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('entries',19);
COMMIT;
-- host.db
PRAGMA user_version=1;
BEGIN TRANSACTION;
CREATE TABLE agents(  class TEXT NOT NULL, name TEXT NOT NULL, created_at INTEGER NOT NULL,  kept INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(class, name)) WITHOUT ROWID;
INSERT INTO "agents" VALUES('Counter','a',1795969651710,1);
INSERT INTO "agents" VALUES('DurableAgent','c',1795969651719,1);
INSERT INTO "agents" VALUES('SessionCache','b',1795969651715,1);
INSERT INTO "agents" VALUES('talks','d',1795969651737,1);
CREATE TABLE clock(id INTEGER PRIMARY KEY, seen_at INTEGER NOT NULL);
INSERT INTO "clock" VALUES(1,1795969652774);
CREATE TABLE condemned(  class TEXT NOT NULL, name TEXT NOT NULL,  PRIMARY KEY(class, name)) WITHOUT ROWID;
CREATE TABLE objects(  class TEXT NOT NULL, name TEXT NOT NULL, uuid TEXT NOT NULL UNIQUE,  created_at INTEGER NOT NULL, last_active_at INTEGER NOT NULL,  PRIMARY KEY(class, name)) WITHOUT ROWID;
INSERT INTO "objects" VALUES('Counter','a','f64ecac7-2403-4b8d-867a-f9ea4df730f5',1795969651710,1795969652774);
INSERT INTO "objects" VALUES('DurableAgent','c','6466ace7-21e8-4de3-9191-de6fb185e83f',1795969651719,1795969652813);
INSERT INTO "objects" VALUES('SessionCache','b','b8ba12d9-3b80-462b-96ca-088c2121968a',1795969651715,1795969652833);
INSERT INTO "objects" VALUES('talks','d','56d9c509-4d2b-4a68-8d14-3a9f09f6ac75',1795969651737,1795969652790);
CREATE TABLE served_classes(segment TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO "served_classes" VALUES('assistant');
INSERT INTO "served_classes" VALUES('counter');
INSERT INTO "served_classes" VALUES('durable-agent');
INSERT INTO "served_classes" VALUES('session-cache');
INSERT INTO "served_classes" VALUES('talks');
CREATE TABLE wakes(  class TEXT NOT NULL, name TEXT NOT NULL, at INTEGER, working INTEGER NOT NULL,  unknown_operations INTEGER, dead INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(class, name)) WITHOUT ROWID;
INSERT INTO "wakes" VALUES('DurableAgent','c',1795969651749,1,NULL,1);
INSERT INTO "wakes" VALUES('talks','d',NULL,1,NULL,0);
CREATE INDEX agents_below ON agents(name, class) WHERE instr(name, '/');
CREATE INDEX wakes_operations ON wakes(class, name) WHERE unknown_operations IS NOT NULL;
COMMIT;
-- server.db
PRAGMA user_version=1;
BEGIN TRANSACTION;
CREATE TABLE class_counts(  class TEXT NOT NULL, counter TEXT NOT NULL, window INTEGER NOT NULL, used INTEGER NOT NULL,  PRIMARY KEY(class, counter)) WITHOUT ROWID;
INSERT INTO "class_counts" VALUES('talks','fetch.requests',29932827,1);
COMMIT;
