#include <criterion/criterion.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/id.hpp"
#include "base/json.hpp"
#include "tests/support/expect.hpp"
#include "tests/transfer/service.hpp"
#include "transfer/recover.hpp"
#include "transfer/store.hpp"

using namespace rowferry;
using namespace rowferry::test;
using namespace rowferry::transfer;

namespace {

std::string record_of(const std::string& id, State state) {
  Record record;
  record.id = id;
  record.state = state;
  record.spec = plain_spec;
  record.created = WallClock::now();
  if (is_terminal(state)) record.ended = WallClock::now();
  record.status.set("id", id);
  record.status.set("state", std::string(to_string(state)));
  return record_text(record);
}

// A child that owns a record, tells so, and waits to be killed.
pid_t own_in_child(const Store& store, const std::string& id) {
  int ready[2];
  cr_assert_eq(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const RecordFilePtr mine = store.create(id, record_of(id, State::queued));
    mine->write(record_of(id, State::running));
    (void)!write(ready[1], "x", 1);
    for (;;) pause();
  }
  char got = 0;
  cr_assert_eq(read(ready[0], &got, 1), 1);
  close(ready[0]);
  close(ready[1]);
  return child;
}

void kill_and_wait(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace

Test(store, a_record_belongs_to_who_holds_its_lock) {
  const TempDir dir;
  const Store store(dir.path());
  store.open();
  const std::string id = new_transfer_id();
  RecordFilePtr mine = store.create(id, record_of(id, State::queued));
  cr_expect_null(store.own(id).get());
  mine->write(record_of(id, State::running));
  cr_expect_null(store.own(id).get(), "the lock passes to the new file");
  mine.reset();
  cr_expect_not_null(store.own(id).get());
  cr_expect_null(store.own(new_transfer_id()).get());
}

Test(store, a_killed_owner_leaves_the_last_whole_record) {
  const TempDir dir;
  const Store store(dir.path());
  store.open();
  const std::string id = new_transfer_id();
  const pid_t child = own_in_child(store, id);
  cr_expect_null(store.own(id).get());
  cr_expect(recover(store, std::chrono::hours(1), "test").interrupted.empty(), "it is owned");
  kill_and_wait(child);
  const Recovered found = recover(store, std::chrono::hours(1), "test");
  cr_assert_eq(found.interrupted.size(), 1);
  const Record record = parse_record(*store.read(id));
  cr_expect_eq(record.state, State::interrupted);
  EXPECT_TEXT(text_at(record.status, "state"), "interrupted");
  EXPECT_TEXT(text_at(record.status, "error.code"), "interrupted");
  EXPECT_TEXT(text_at(Json::parse(*store.read_artifact(id)), "state"), "interrupted");
  cr_expect(recover(store, std::chrono::hours(1), "test").interrupted.empty(), "only once");
}

Test(store, lists_newest_first_and_only_transfers) {
  const TempDir dir;
  const Store store(dir.path());
  store.open();
  const auto now = time::now();
  const std::string old_one = new_transfer_id(now - std::chrono::hours(1));
  const std::string new_one = new_transfer_id(now);
  store.create(old_one, record_of(old_one, State::failed));
  store.create(new_one, record_of(new_one, State::failed));
  std::ofstream(std::filesystem::path(dir.path()) / "transfers" / "notes.json") << "{}";
  const std::vector<std::string> ids = store.ids();
  cr_assert_eq(ids.size(), 2);
  EXPECT_TEXT(ids[0], new_one);
}

Test(store, what_is_past_its_retention_is_removed) {
  const TempDir dir;
  const Store store(dir.path());
  store.open();
  const std::string id = new_transfer_id();
  store.create(id, record_of(id, State::succeeded));
  store.write_artifact(id, "{}");
  (void)recover(store, std::chrono::hours(1), "test");
  cr_expect_eq(prune(store, std::chrono::hours(1)), 0);
  cr_expect(store.read(id).has_value());
  (void)recover(store, std::chrono::seconds(-1), "test");
  cr_expect_not(store.read(id).has_value());
  cr_expect_not(store.read_artifact(id).has_value());
}

Test(store, pruning_leaves_what_runs_and_what_is_owned) {
  const TempDir dir;
  const Store store(dir.path());
  store.open();
  const auto now = time::now();
  const std::string running = new_transfer_id(now);
  const std::string owned = new_transfer_id(now + std::chrono::milliseconds(2));
  const std::string old_one = new_transfer_id(now + std::chrono::milliseconds(4));
  store.create(running, record_of(running, State::running));
  const RecordFilePtr mine = store.create(owned, record_of(owned, State::failed));
  store.create(old_one, record_of(old_one, State::failed));
  cr_expect_eq(prune(store, std::chrono::seconds(-1)), 1);
  cr_expect_eq(store.ids(), (std::vector<std::string>{owned, running}));
  cr_expect_eq(parse_record(*store.read(running)).state, State::running);
}

Test(store, a_record_whose_process_has_ended_is_read_as_interrupted) {
  const TempDir dir;
  const Store store(dir.path());
  store.open();
  const std::string left = new_transfer_id();
  const std::string owned = new_transfer_id();
  store.create(left, record_of(left, State::running));
  const RecordFilePtr mine = store.create(owned, record_of(owned, State::running));
  cr_expect_eq(read_record(store, left, "test")->state, State::interrupted);
  cr_expect_eq(parse_record(*store.read(left)).state, State::interrupted, "on disk too");
  cr_expect(store.read_artifact(left).has_value());
  cr_expect_eq(read_record(store, owned, "test")->state, State::running);
  cr_expect_not(read_record(store, new_transfer_id(), "test").has_value());
}

Test(store, a_damaged_record_is_left_alone_and_told) {
  const TempDir dir;
  const Store store(dir.path());
  store.open();
  const std::string id = new_transfer_id();
  store.create(id, R"({"id": "x"})");
  const Recovered found = recover(store, std::chrono::hours(1), "test");
  cr_assert_eq(found.damaged.size(), 1);
  cr_expect(found.damaged[0].starts_with(id));
  cr_expect(store.read(id).has_value());
}

Test(store, keys_are_kept_for_a_day) {
  const TempDir dir;
  const Store store(dir.path());
  store.open();
  const auto taken = [](std::string_view) { return false; };
  store.claim_key("one", key_text({"one", "body", "id1", WallClock::now()}), taken);
  store.claim_key("two", key_text({"two", "body", "id2", WallClock::now() - std::chrono::hours(25)}), taken);
  const Recovered found = recover(store, std::chrono::hours(1), "test");
  cr_assert_eq(found.keys.size(), 1);
  EXPECT_TEXT(found.keys[0].key, "one");
  EXPECT_TEXT(found.keys[0].id, "id1");
  cr_expect_eq(store.read_keys().size(), 1);
}

Test(store, a_key_belongs_to_the_first_of_two_processes) {
  const TempDir dir;
  const Store store(dir.path());
  store.open();
  const Store other(dir.path());
  const std::string first = key_text({"k", "body", "id1", WallClock::now()});
  const std::string second = key_text({"k", "body", "id2", WallClock::now()});
  const auto taken = [](std::string_view) { return false; };
  cr_expect_not(store.claim_key("k", first, taken).has_value(), "it is free");
  EXPECT_TEXT(other.claim_key("k", second, taken).value_or(""), first);
  cr_expect_not(other.claim_key("k", second, [](std::string_view) { return true; }).has_value(), "it has lapsed");
  store.remove_key("k", first);
  EXPECT_TEXT(store.claim_key("k", first, taken).value_or(""), second);
  store.remove_key("k", second);
  cr_expect_not(store.claim_key("k", first, taken).has_value());
}

Test(store, what_is_no_file_is_no_record_and_stops_nothing, .timeout = 10) {
  const TempDir dir;
  const Store store(dir.path());
  store.open();
  const std::string pipe = new_transfer_id();
  const std::string folder = new_transfer_id();
  cr_assert_eq(mkfifo((dir.path() + "/transfers/" + pipe + ".json").c_str(), 0600), 0);
  std::filesystem::create_directory(dir.path() + "/transfers/" + folder + ".json");
  cr_expect(store.ids().empty());
  EXPECT_ERROR(store.read(pipe), "state_dir");
  EXPECT_ERROR(store.read(folder), "state_dir");
  cr_expect(recover(store, std::chrono::hours(1), "test").damaged.empty());
}

Test(store, half_written_files_are_removed_once_their_writer_must_be_dead) {
  const TempDir dir;
  const Store store(dir.path());
  store.open();
  const std::string left = dir.path() + "/transfers/" + new_transfer_id() + ".json.new";
  std::ofstream(left) << "{";
  store.remove_unfinished(std::chrono::hours(1));
  cr_expect(std::filesystem::exists(left), "its writer may be at it");
  store.remove_unfinished(std::chrono::seconds(-1));
  cr_expect_not(std::filesystem::exists(left));
}

Test(store, a_directory_that_is_gone_or_full_is_not_writable) {
  const TempDir dir;
  const Store store(dir.path());
  store.open();
  EXPECT_TEXT(store.why_not_writable(), "");
  cr_expect(std::filesystem::is_empty(dir.path() + "/transfers"), "the probe is gone");
  std::filesystem::remove_all(dir.path() + "/transfers");
  cr_expect(store.why_not_writable().find("No such file") != std::string::npos);
}

Test(store, the_head_of_a_record_tells_its_state) {
  const TempDir dir;
  const Store store(dir.path());
  store.open();
  const std::string id = new_transfer_id();
  const std::string text = record_of(id, State::failed);
  store.create(id, text);
  const std::optional<RecordHead> head = read_head(store, id);
  cr_assert(head.has_value());
  cr_expect_eq(head->state, State::failed);
  cr_expect(head->ended.has_value());
  store.create(id, text.substr(0, text.size() / 2));
  cr_expect_not(read_head(store, id).has_value(), "half a record");
}

Test(store, a_record_of_a_later_version_is_shown_but_left_alone) {
  const TempDir dir;
  const Store store(dir.path());
  store.open();
  const std::string id = new_transfer_id();
  const std::string text =
      R"({"schema_version":2,"id":")" + id + R"(","state":"running","status":{"state":"running"}})";
  store.create(id, text);
  cr_expect(recover(store, std::chrono::seconds(-1), "test").interrupted.empty());
  const std::optional<Record> record = read_record(store, id, "test");
  cr_assert(record.has_value());
  EXPECT_TEXT(text_at(record->status, "state"), "running");
  EXPECT_TEXT(store.read(id).value_or(""), text);
  EXPECT_ERROR(refuse_newer(*record), "record_newer");
}

Test(store, a_directory_that_cannot_be_is_told) {
  const TempDir dir;
  std::ofstream(std::filesystem::path(dir.path()) / "file") << "x";
  EXPECT_ERROR(Store(dir.path() + "/file").open(), "state_dir");
}
