// A reading: what is read and how, shared by the workers' sessions.
//
// Lifecycle: start() looks everything up, decides isolation and slices, and closes its session again: nothing is held
// in the server between slices. The state is shared by the Reading and its Readers and dies with the last of them.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "mssql/source.hpp"

namespace rowferry::mssql {

struct ReadingState {
  explicit ReadingState(const system::ReadRequest& the_request)
      : request(the_request), text(source_text(the_request.what)) {}

  async::Task<void> start();
  // A session set up for reading.
  async::Task<Lease> open() const;
  // The whole SELECT of a slice.
  std::string select(const std::string& predicate) const;

  system::ReadRequest request;
  std::string text;  // the table, for messages
  std::unique_ptr<SessionPool> sessions;
  std::vector<system::Slice> known_values;  // found by the plan

  Origin origin;
  std::string database;  // where the table is; empty: the connection's
  Isolation isolation;
  std::vector<std::string> expressions;  // of the columns, in reading order
  std::vector<bool> exact;               // the column comes as its type says; else as an expression of that layout
  std::vector<std::size_t> key;          // positions of the primary key's columns
  rows::SchemaPtr schema;
  system::SlicePlan slices;
  std::vector<system::Notice> notices;
  system::Consistency consistency = system::Consistency::none;
  std::set<std::string> specs;  // of all slices so far, late ones too
  std::uint64_t counted = 0;    // rows, as the server has counted them, of the slices that were read
  bool ended = false;

 private:
  void bind_columns();
};

// One session for each worker; the first is also the one that looks up and counts.
std::size_t sessions_needed(const system::ReadRequest& request);
std::unique_ptr<system::Reading> make_reading(std::shared_ptr<ReadingState> state);
std::unique_ptr<system::Reader> make_reader(std::shared_ptr<ReadingState> state, Lease lease);

}  // namespace rowferry::mssql
