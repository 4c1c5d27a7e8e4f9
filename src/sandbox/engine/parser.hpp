// T-SQL text to a program. Names are not resolved here (that is done when a statement runs).
#pragma once

#include <initializer_list>
#include <string_view>

#include "sandbox/engine/ast.hpp"
#include "sandbox/engine/lexer.hpp"

namespace rowferry::sandbox::engine {

struct ParseOptions {
  bool quoted_identifiers = true;
  tds::Collation collation;  // of literals: the database's
};

// Throws SqlError (102, 156, …): nothing of the batch is run then.
ProgramPtr parse_batch(std::string text, const ParseOptions& options);
ExprPtr parse_expression(std::string_view text, const ParseOptions& options);
QueryPtr parse_query(std::string_view text, const ParseOptions& options);
// "@p int, @q nvarchar(10) OUTPUT": sp_executesql's declarations and procedures' parameters.
struct ParameterSpec {
  std::string name;
  Type type;
  ExprPtr default_value;
  bool output = false;
};
std::vector<ParameterSpec> parse_parameters(std::string_view text, const ParseOptions& options);
std::vector<ParameterSpec> parse_procedure_header(std::string_view text, const ParseOptions& options);
std::optional<Type> parse_type_text(std::string_view text, const ParseOptions& options);

bool is_reserved(std::string_view upper);
std::string upper_ascii(std::string_view text);

// The parser's state; its parts are in parse_expression.cpp, parse_query.cpp, parse_statement.cpp, parse_table.cpp.
class Parser {
 public:
  Parser(std::string_view text, const ParseOptions& options);

  void program(Program& into);
  ExprPtr expression();
  QueryPtr query();
  std::vector<ParameterSpec> parameters(bool procedure);
  std::vector<ParameterSpec> procedure_header();  // of CREATE PROCEDURE name …
  bool at_end() const { return here().kind == TokenKind::end; }
  const Token& here() const { return tokens_[at_]; }
  // `in_cast`: a length left out is 30, not 1.
  void data_type(Type& type, std::string& user_type, bool in_cast);
  [[noreturn]] void syntax_error() const;

 private:
  // tokens
  const Token& ahead(std::size_t n) const { return tokens_[std::min(at_ + n, tokens_.size() - 1)]; }
  const Token& next() { return tokens_[at_ < tokens_.size() - 1 ? at_++ : at_]; }
  bool is(std::string_view keyword, std::size_t n = 0) const;
  bool is_symbol(std::string_view symbol, std::size_t n = 0) const;
  bool accept(std::string_view keyword);
  bool accept_symbol(std::string_view symbol);
  bool accept_all(std::initializer_list<std::string_view> keywords);
  void expect(std::string_view keyword);
  void expect_symbol(std::string_view symbol);
  bool is_name(std::size_t n = 0) const;
  std::string name();
  std::string type_word();
  ObjectName object_name();
  std::string word();  // any word, upper case
  std::string source_text(std::size_t begin, std::size_t end) const {
    return std::string(text_.substr(begin, end - begin));
  }
  Int128 integer_literal();
  void deeper();
  void skip_statement();
  void skip_parentheses();

  // expressions
  ExprPtr logical_or();
  ExprPtr logical_and();
  ExprPtr logical_not();
  ExprPtr predicate();
  ExprPtr predicate_tail(ExprPtr left);
  ExprPtr additive();
  ExprPtr multiplicative();
  ExprPtr unary();
  ExprPtr postfix();
  ExprPtr primary();
  ExprPtr literal();
  ExprPtr parenthesised();
  ExprPtr case_expression();
  ExprPtr named();
  ExprPtr function(std::vector<std::string> parts, int line);
  ExprPtr conversion(const std::string& which, int line);
  void over(Expr& call);
  ExprPtr make(ExprKind kind) const;
  ExprPtr make(ExprKind kind, std::vector<ExprPtr> args) const;
  std::vector<ExprPtr> expression_list();

  // queries
  Select select_core();
  void query_term(Query& into);
  SelectItem select_item();
  TableRefPtr table_source();
  TableRefPtr table_primary();
  void table_alias(TableRef& table);
  std::vector<std::string> table_hints();
  std::vector<OrderItem> order_items();
  std::vector<CommonTable> common_tables();
  void query_hints();
  std::vector<SelectItem> output_clause();
  std::vector<std::string> name_list();

  // statements
  void statement(Program& into);
  void block(Program& into);
  void if_statement(Program& into);
  void while_statement(Program& into);
  void begin_statement(Program& into);
  void set_statement(Statement& s);
  void declare_statement(Statement& s);
  void insert_statement(Statement& s, std::vector<CommonTable> with);
  void insert_bulk(Statement& s);
  void update_statement(Statement& s, std::vector<CommonTable> with);
  void delete_statement(Statement& s, std::vector<CommonTable> with);
  void transaction_statement(Statement& s);
  void execute_statement(Statement& s);
  Execute execute_call();
  void simple_statement(Statement& s);
  void small_statement(Statement& s);
  template <class T>
  T& put(Statement& s) {
    return s.what.emplace<T>();
  }

  // definitions
  void create_statement(Statement& s);
  void alter_statement(Statement& s);
  void drop_statement(Statement& s);
  void create_partition(Statement& s);
  void on_place(std::string& scheme, std::string& column);
  void create_index(Statement& s, bool unique);
  void create_text(Statement& s, ObjectKind kind, std::size_t begin, bool alter, bool or_alter);
  void alter_table(Statement& s);
  void table_elements(TableParts& parts);
  void table_element(TableParts& parts);
  ColumnSpec column_spec(TableParts& parts);
  bool column_option(ColumnSpec& column, TableParts& parts, std::string& constraint);
  void table_constraint(TableParts& parts, std::string constraint_name);
  void key_tail(KeySpec& key);
  void index_options(KeySpec& key);
  ForeignKeySpec references(std::string constraint_name);
  std::vector<std::pair<std::string, bool>> key_columns();
  ExprPtr captured(std::string& text, bool parenthesised_only);

  std::string_view text_;
  ParseOptions options_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::vector<std::vector<std::size_t>> breaks_;  // jumps out of the enclosing loops
  std::vector<std::size_t> continues_;
};

}  // namespace rowferry::sandbox::engine
