// Every queue, buffer, wait and retry has its name and default here; docs/limits.md lists them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace rowferry::limits {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Errors
inline constexpr std::size_t error_value_chars = 64;  // a value in an error message is cut here

// JSON that is read (specs, configuration, records)
inline constexpr std::size_t json_bytes = 4 * 1024 * 1024;
inline constexpr std::size_t json_depth = 64;          // nested arrays and objects
inline constexpr std::size_t nearest_name_chars = 64;  // longer unknown names get no suggestion

// The loop
inline constexpr milliseconds loop_turn_max{5};     // a turn above this is counted as long
inline constexpr milliseconds loop_drain_slice{2};  // ready coroutines resumed before I/O is polled again

// Batches and the pipeline
inline constexpr std::size_t batch_bytes = 256 * 1024;     // a Batch is closed at about this size (L2 cache)
inline constexpr std::size_t channel_bytes = 1024 * 1024;  // bytes that wait between one reader and one writer
inline constexpr std::size_t batch_pool_max = 64;          // empty batches kept for reuse, per pool

// Network
inline constexpr milliseconds connect_timeout{15'000};
inline constexpr std::size_t socket_read_bytes = 128 * 1024;
inline constexpr int listen_backlog = 512;
inline constexpr milliseconds accept_retry_wait{100};  // after a shortage of descriptors
inline constexpr milliseconds tls_handshake_timeout{15'000};
inline constexpr std::size_t tls_read_bytes_min = 4 * 1024;  // a TLS stream's input buffer; grows to socket_read_bytes
inline constexpr std::size_t tls_write_bytes = 128 * 1024;   // records that wait before the inner write

// TDS client
inline constexpr milliseconds tds_query_timeout{60'000};              // a catalogue query or a small statement
inline constexpr milliseconds tds_cancel_timeout{5'000};              // from an attention (or an abort) to its answer
inline constexpr int tds_redirects_max = 5;                           // of one connect, to where a server sends it
inline constexpr std::size_t tds_query_bytes_max = 64 * 1024 * 1024;  // rows that query() may gather
inline constexpr std::size_t tds_token_bytes_max = 4 * 1024 * 1024;   // one token that is not a row
inline constexpr std::size_t tds_messages_max = 256;  // server messages kept of one request; later ones are dropped
inline constexpr std::size_t tds_bulk_flush_bytes = 128 * 1024;  // encoded bytes that go to the socket at once
inline constexpr std::size_t tds_bulk_block_rows = 1024;         // rows that are encoded column by column at once

// The sandbox
inline constexpr milliseconds sandbox_login_timeout{15'000};  // from accept to the login's answer
inline constexpr std::size_t sandbox_connections_max = 512;
inline constexpr std::size_t sandbox_request_bytes_max = 256 * 1024 * 1024;  // a batch or call that is kept whole
inline constexpr std::size_t sandbox_login_bytes_max = 128 * 1024;           // MS-TDS 2.2.6.4
inline constexpr std::size_t sandbox_reply_bytes = 256 * 1024;               // of an answer that wait for the socket
inline constexpr std::size_t sandbox_bulk_rows = 4096;                       // bulk rows given to the engine at once
inline constexpr std::size_t sandbox_row_bytes_max = 0x7FFFFFFF;             // one row of a bulk message
inline constexpr seconds sandbox_close_wait{5};                              // for the last answer to leave

// HTTP server
inline constexpr std::size_t http_head_bytes = 32 * 1024;   // request line and header fields together
inline constexpr std::size_t http_header_count = 100;       // fields of one request
inline constexpr std::size_t http_target_bytes = 8 * 1024;  // path and query
inline constexpr std::size_t http_chunk_line_bytes = 256;   // a chunk's size with its extensions
inline constexpr std::size_t http_trailer_bytes = 8 * 1024;
inline constexpr std::uint64_t http_body_bytes = 1024 * 1024;  // a collected request body
inline constexpr std::size_t http_connections = 4096;          // open at once; fewer where descriptors are short
inline constexpr std::size_t http_spare_descriptors = 256;     // left for everything else in the process
inline constexpr std::size_t http_idle_read_bytes = 1024;      // the buffer of a connection between requests
inline constexpr std::size_t http_read_bytes = 16 * 1024;      // the buffer while a request comes in
inline constexpr milliseconds http_idle_time{75'000};          // between requests
inline constexpr milliseconds http_head_time{10'000};          // from a request's first byte to the end of its head
inline constexpr milliseconds http_transfer_grace{10'000};     // for a body or an answer, on top of its bytes at
inline constexpr std::size_t http_rate_min = 8 * 1024;         //   this many bytes per second
inline constexpr milliseconds http_handler_time{120'000};      // from the end of the head to the answer
inline constexpr milliseconds http_linger_time{2'000};         // for a refused client to read why
inline constexpr std::size_t http_linger_bytes = 256 * 1024;   // of its request thrown away meanwhile
inline constexpr milliseconds http_sweep_time{250};            // how often deadlines are looked at
inline constexpr milliseconds http_stop_grace{10'000};         // for requests in progress when the server stops

// The command line
inline constexpr std::size_t config_bytes_max = 1024 * 1024;  // the configuration file
inline constexpr std::size_t secret_bytes_max = 64 * 1024;    // a file that holds a password or token
inline constexpr milliseconds health_timeout{5'000};          // of `rowferry health`
inline constexpr std::size_t health_answer_bytes = 64 * 1024;
inline constexpr seconds display_plain_interval{5};  // between progress lines when standard error is no terminal

// Transfers
inline constexpr std::size_t spec_bytes_max = 1024 * 1024;  // a transfer spec, as JSON text
inline constexpr int spec_depth_max = 16;
inline constexpr int slices_per_load_worker = 4;  // planned at least, where the source can be cut
inline constexpr int slices_max = 10'000;
inline constexpr int workers_max = 64;  // of one kind, in one transfer
inline constexpr int slice_retries_max = 3;
inline constexpr int server_away_tries_max = 6;  // more, after 0.5 to 16 s, while a server cannot be reached
inline constexpr int attempts_max = 3;           // of one run; a resume counts anew
inline constexpr int after_steps_tries_max = 3;
inline constexpr milliseconds retry_backoff_first{500};  // doubled with every further retry
inline constexpr milliseconds retry_backoff_max{30'000};
inline constexpr int late_slice_rounds_max = 3;
inline constexpr milliseconds after_steps_timeout{600'000};
inline constexpr milliseconds cleanup_timeout{30'000};  // ending sessions, locks and staging of one side
inline constexpr milliseconds sample_every{100};        // resident memory and rates, while a transfer runs
inline constexpr std::uint64_t memory_budget_default = 1024ULL * 1024 * 1024;  // of drained slices
inline constexpr std::size_t low_memory_channel_bytes = 256 * 1024;
inline constexpr std::size_t ended_kept_max = 256;        // ended transfers kept in memory, for status documents
inline constexpr std::size_t warnings_max = 200;          // kept of one transfer
inline constexpr std::size_t partitions_named_max = 100;  // in the warning of a run that has renewed some and failed
inline constexpr std::size_t list_page_max = 200;
inline constexpr std::size_t record_bytes_max = 64 * 1024 * 1024;  // a record or artifact that is read back
inline constexpr seconds idempotency_keep{24 * 3600};
inline constexpr milliseconds key_record_wait{5'000};   // for the record of a transfer that another process accepts
inline constexpr milliseconds key_record_poll{50};      // between two looks for it
inline constexpr seconds left_file_age{60};             // a half-written file this old has lost its writer
inline constexpr std::size_t record_head_bytes = 1024;  // of a record, where its state stands
inline constexpr milliseconds state_dir_check_every{3'000};   // at most this often, for /readyz
inline constexpr milliseconds unsaved_retry_every{2'000};     // ends of transfers that the state directory refused
inline constexpr milliseconds housekeeping_every{3'600'000};  // removal of records past their retention
inline constexpr std::size_t idempotency_key_chars_max = 256;
inline constexpr std::size_t pipeline_runs_kept = 100;   // in a pipeline's history
inline constexpr std::size_t pipeline_median_runs = 20;  // the last that succeeded; medians are theirs

// PostgreSQL
inline constexpr seconds pg_keepalive_idle{30};           // TCP keep-alive of every session
inline constexpr seconds pg_keepalive_query{30};          // the session that holds the snapshot is asked this often
inline constexpr milliseconds pg_cancel_wait{10'000};     // cancel request, then the rest of the answer
inline constexpr milliseconds pg_catalogue_wait{60'000};  // all catalogue queries of one table
inline constexpr milliseconds pg_lock_wait{30'000};       // for the first ACCESS SHARE locks of a reading
inline constexpr int pg_relock_attempts = 5;              // of a worker that reconnects, with NOWAIT
inline constexpr milliseconds pg_relock_pause{200};       // before the second of them, doubled each time
inline constexpr std::chrono::milliseconds pg_not_ready_pause{
    500};                                                 // before the next login to a server that is starting
inline constexpr int pg_begin_attempts = 3;               // when the table changed between catalogue and lock
inline constexpr milliseconds pg_end_wait{10'000};        // to end a reading's sessions in good order
inline constexpr std::size_t pg_input_bytes = 120'000;    // libpq's input buffer is widened to hold this: 128 KiB
inline constexpr std::size_t pg_block_bytes = 64 * 1024;  // rows held as libpq gave them before they are decoded
inline constexpr std::size_t pg_copy_message_bytes =
    64 * 1024 - 5;  // of one CopyData message: with its head, whole blocks of libpq's
inline constexpr milliseconds pg_copy_fail_wait{2'000};     // for a COPY that was told to fail; then it is cancelled
inline constexpr milliseconds pg_decode_slice{1};           // decoded at a stretch before others run
inline constexpr std::size_t pg_copy_block_rows_min = 16;   // rows that are encoded at once, however long they are
inline constexpr std::size_t pg_copy_block_rows_max = 256;  // the same, however short
inline constexpr milliseconds pg_keep_alive_wait{15'000};  // for the answer of the session that holds the target's lock
inline constexpr int pg_target_lock_tries_max = 10;        // to take a lost one again
inline constexpr milliseconds pg_target_lock_pause{100};   // after the first of them, more after each
inline constexpr milliseconds pg_commit_wait{300'000};     // a COMMIT that was sent is awaited so long
inline constexpr milliseconds pg_rollback_wait{15'000};    // else the session is closed, which rolls back too
inline constexpr milliseconds pg_ledger_lock_wait{15'000};               // for a COMMIT in flight to show itself
inline constexpr int pg_finalize_tries_max = 3;                          // after deadlocks and lock timeouts
inline constexpr int pg_swap_tries_max = 10;                             // of statements that lock what others use
inline constexpr milliseconds pg_swap_pause{200};                        // after the first of them, more after each
inline constexpr int pg_slices_max = 10'000;                             // of one plan
inline constexpr int pg_sample_rows = 100'000;                           // read to find the bounds of key ranges
inline constexpr std::size_t pg_plan_bytes_max = std::size_t{64} << 20;  // of an EXPLAIN that is looked through
inline constexpr std::size_t pg_plan_depth_max = 256;                    // its nested objects and arrays

// SQL Server as a source
inline constexpr milliseconds mssql_read_lock_wait{30'000};   // LOCK_TIMEOUT where read.lock_timeout_ms is not given
inline constexpr milliseconds mssql_slices_timeout{600'000};  // one query that looks for bounds or values
inline constexpr int mssql_slices_max = 10'000;               // of one plan
inline constexpr std::uint64_t mssql_small_table_rows = 100'000;    // below it, one slice is enough
inline constexpr std::uint64_t mssql_sample_from_rows = 1'000'000;  // bounds come from a sample above it
inline constexpr std::uint64_t mssql_sample_rows = 100'000;         // of the sample, about
inline constexpr seconds mssql_values_remembered{300};  // values that the plan has found serve a reading so long
// SQL Server as a target
inline constexpr milliseconds mssql_session_wait{60'000};  // for a free one of a connection's max_sessions
inline constexpr seconds mssql_keep_alive_every{30};       // a query on the session that holds the target's lock
inline constexpr milliseconds mssql_keep_alive_timeout{15'000};
inline constexpr milliseconds mssql_commit_timeout{300'000};      // a COMMIT that was sent is awaited so long
inline constexpr milliseconds mssql_rollback_timeout{10'000};     // else the session is closed, which rolls back too
inline constexpr milliseconds mssql_ledger_lock_timeout{15'000};  // for a COMMIT in flight to show itself
inline constexpr int mssql_finalize_tries_max = 3;                // after deadlocks and lock timeouts
inline constexpr std::uint64_t mssql_bulk_rows = 131'072;         // of one INSERT BULK statement
inline constexpr std::uint64_t mssql_bulk_rows_columnstore = 1'048'576;  // a whole row group
inline constexpr std::chrono::hours ledger_margin{24};                   // kept longer than records, at least
inline constexpr std::chrono::hours ledger_keep{90 * 24};                // rows of a ledger
// The sandbox's engine
inline constexpr std::size_t sandbox_block_bytes = 1024 * 1024;  // rows are kept in blocks of about this size
inline constexpr std::size_t sandbox_small_insert_rows = 1000;   // a larger INSERT … SELECT gets blocks of its own
inline constexpr int sandbox_statements_per_step = 1000;         // then the loop has its turn, whatever a batch does
inline constexpr milliseconds sandbox_portion{2};                // of a long statement, then the loop has its turn
inline constexpr std::size_t sandbox_rows_bytes = 32 * 1024;     // result rows are given to the writer in such pieces
inline constexpr std::size_t sandbox_sort_run = 2048;            // rows sorted at once; runs are merged in portions
inline constexpr std::size_t sandbox_filter_cache = 64;          // values whose conditions' outcome is remembered
inline constexpr int sandbox_nesting_max = 32;                   // procedures and EXEC within another, as SQL Server's
inline constexpr int sandbox_expression_depth = 512;             // nested expressions and queries of one statement

}  // namespace rowferry::limits
