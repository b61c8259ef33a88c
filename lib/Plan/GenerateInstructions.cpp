// Writes Instructions.h and Enums.td from Plan.fbs, when Meshwork is built:
//
//   meshwork-plan-instructions Plan.fbs Instructions.h Enums.td
//
// Instructions.h has a list of the instructions and two functions. One calls a
// visitor with each operand of an instruction. The other sets the fields of an
// instruction's table from an op with accessors of the same names. The
// attributes that say which field is an operand are described in Plan.fbs.
// Enums.td has the cases of each enum for TableGen, so that an enum of a
// dialect has the plan's names and numbers.
#include <flatbuffers/idl.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>

namespace {
using flatbuffers::FieldDef;
using flatbuffers::StructDef;

/// The text of an attribute, "0" of one without; null: the field has none.
const std::string *attribute(const flatbuffers::Definition &of,
                             const char *name) {
  const flatbuffers::Value *value = of.attributes.Lookup(name);
  return value ? &value->constant : nullptr;
}

bool isList(const FieldDef &field) {
  return field.value.type.base_type == flatbuffers::BASE_TYPE_VECTOR;
}
const StructDef *tableOf(const FieldDef &field) {
  return field.value.type.enum_def ? nullptr : field.value.type.struct_def;
}
/// Absent operands are noView.
bool mayBeAbsent(const FieldDef &field) {
  return field.value.constant == "4294967295";
}

const FieldDef &inPlaceOf(const StructDef &table, const std::string &name) {
  if (const FieldDef *field = table.fields.Lookup(name))
    return *field;
  std::cerr << table.name << ": in_place names " << name
            << ", which is none of its fields\n";
  std::exit(65);
}

/// "first_row" as "FirstRow".
std::string camelCase(const std::string &name) {
  std::string text;
  bool isFirst = true;
  for (char c : name) {
    if (c != '_')
      text += isFirst ? static_cast<char>(std::toupper(c)) : c;
    isFirst = c == '_';
  }
  return text;
}

/// The calls for the operands of one table: those it reads, those of the
/// tables in it, those it writes.
class Operands {
public:
  Operands(std::ostream &out, std::string from, std::string prefix)
      : out(out), from(std::move(from)), prefix(std::move(prefix)) {}

  void write(const StructDef &table) {
    for (const FieldDef *field : table.fields.vec)
      if (attribute(*field, "reads"))
        reads(table, *field);
    for (const FieldDef *field : table.fields.vec)
      if (tableOf(*field))
        nested(*field);
    for (const FieldDef *field : table.fields.vec)
      if (attribute(*field, "writes"))
        writes(table, *field);
    for (const FieldDef *field : table.fields.vec)
      if (attribute(*field, "adds"))
        call("adds", *field, from + ".accumulate()");
  }

private:
  std::string get(const FieldDef &field) const {
    return from + "." + field.name + "()";
  }
  void call(const std::string &what, const FieldDef &field,
            const std::string &more = "") {
    out << "  visit." << what << (mayBeAbsent(field) ? "IfThere" : "") << "("
        << get(field) << ", \"" << prefix << field.name << "\""
        << (more.empty() ? "" : ", ") << more << ");\n";
  }
  /// Of "field=value": that the field has the value, or has another one.
  std::string condition(const std::string &text, const char *compare) const {
    size_t equals = text.find('=');
    if (equals == std::string::npos)
      return "";
    const std::string name = text.substr(0, equals);
    return "  if (" + from + "." + name + "() " + compare + " " +
           camelCase(name) + "::" + text.substr(equals + 1) + ")\n  ";
  }
  void reads(const StructDef &table, const FieldDef &field) {
    for (const FieldDef *other : table.fields.vec)
      if (const std::string *place = attribute(*other, "in_place");
          place && *place == field.name)
        return; // With the other one.
    if (isList(field) && !attribute(field, "writes"))
      return call("readsAll", field);
    if (isList(field)) {
      out << "  visit.readsAndWrites(" << get(field) << ", " << from << "."
          << *attribute(field, "writes") << "(), \"" << prefix << field.name
          << "\", \"" << prefix << field.name << " (output)\");\n";
      return;
    }
    out << condition(*attribute(field, "reads"), "==");
    call("reads", field);
  }
  void writes(const StructDef &table, const FieldDef &field) {
    if (isList(field)) {
      if (!attribute(field, "reads")) // Else with what it reads.
        call("writesAll", field);
      return;
    }
    if (const std::string *reads = attribute(field, "reads"))
      out << condition(*reads, "!=");
    const std::string *place = attribute(field, "in_place");
    if (!place)
      return call("writes", field);
    const FieldDef &read = inPlaceOf(table, *place);
    out << "  if (" << get(field) << " == " << get(read) << ")\n"
        << "    visit.updates(" << get(field) << ", \"" << prefix << read.name
        << " and " << field.name << "\");\n  else {\n  ";
    call("reads", read);
    out << "  ";
    call("writes", field);
    out << "  }\n";
  }
  void nested(const FieldDef &field) {
    std::string inner = field.name + "Of";
    if (isList(field)) {
      out << "  if (" << get(field) << ")\n  for (const auto *" << inner
          << " : *" << get(field) << ") {\n";
      Operands(out, "(*" + inner + ")", prefix).write(*tableOf(field));
    } else {
      out << "  if (const auto *" << inner << " = " << get(field) << ") {\n";
      Operands(out, "(*" + inner + ")", prefix + field.name + ".")
          .write(*tableOf(field));
    }
    out << "  }\n";
  }

  std::ostream &out;
  std::string from, prefix;
};

void writeList(std::ostream &out, const char *macro,
               const flatbuffers::EnumDef &kinds,
               const std::function<bool(const StructDef &)> &isIn) {
  out << "#define " << macro << "(X)";
  for (const flatbuffers::EnumVal *kind : kinds.Vals())
    if (kind->union_type.struct_def && isIn(*kind->union_type.struct_def))
      out << " X(" << kind->name << ")";
  out << "\n";
}

void writeInstruction(std::ostream &out, const StructDef &table) {
  out << "template <typename Visitor>\nvoid visitOperands(const " << table.name
      << " &op, Visitor &visit) {\n";
  Operands(out, "op", "").write(table);
  out << "}\n"
      << "template <typename From, typename Set>\nvoid setFields(" << table.name
      << "T &to, From from, Set &set) {\n";
  for (const FieldDef *field : table.fields.vec)
    out << "  set(to." << field->name << ", from.get" << camelCase(field->name)
        << "());\n";
  out << "}\n\n";
}

void writeHeader(std::ostream &out, const flatbuffers::EnumDef &kinds) {
  out << "// Made of Plan.fbs by lib/Plan/GenerateInstructions.cpp.\n"
         "#pragma once\n"
         "#include \"meshwork/Plan/Plan.h\"\n\n";
  writeList(out, "MESHWORK_PLAN_INSTRUCTIONS", kinds,
            [](const StructDef &) { return true; });
  writeList(out, "MESHWORK_PLAN_INSTRUCTIONS_OF_GPU_KERNELS", kinds,
            [](const StructDef &table) {
              return attribute(table, "gpu_kernels") != nullptr;
            });
  out << "\nnamespace meshwork::plan {\n\n";
  for (const flatbuffers::EnumVal *kind : kinds.Vals())
    if (const StructDef *table = kind->union_type.struct_def)
      writeInstruction(out, *table);
  out << "} // namespace meshwork::plan\n";
}
/// defvar PlanListKind = [I32EnumCase<"once", 0>, ...];
void writeCases(std::ostream &out, const flatbuffers::EnumDef &kinds) {
  out << "defvar Plan" << kinds.name << " = [";
  const char *comma = "";
  for (const flatbuffers::EnumVal *kind : kinds.Vals()) {
    out << comma << "I32EnumCase<\"" << kind->name << "\", "
        << kind->GetAsInt64() << ">";
    comma = ", ";
  }
  out << "];\n";
}

void writeEnums(std::ostream &out, const flatbuffers::Parser &parser) {
  out << "// Made of Plan.fbs by lib/Plan/GenerateInstructions.cpp.\n"
         "#ifndef MESHWORK_PLAN_ENUMS\n#define MESHWORK_PLAN_ENUMS\n"
         "include \"mlir/IR/EnumAttr.td\"\n";
  for (const flatbuffers::EnumDef *kinds : parser.enums_.vec)
    if (!kinds->is_union)
      writeCases(out, *kinds);
  out << "#endif\n";
}

bool write(const char *path, const std::stringstream &text) {
  std::ofstream file(path);
  file << text.str();
  return static_cast<bool>(file.flush());
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 4) {
    std::cerr << "usage: " << argv[0] << " Plan.fbs Instructions.h Enums.td\n";
    return 64;
  }
  std::stringstream schema, header, enums;
  schema << std::ifstream(argv[1]).rdbuf();
  flatbuffers::Parser parser;
  if (!parser.Parse(schema.str().c_str())) {
    std::cerr << argv[1] << ": " << parser.error_ << "\n";
    return 65;
  }
  const flatbuffers::EnumDef *kinds =
      parser.enums_.Lookup("meshwork.plan.Operation");
  if (!kinds) {
    std::cerr << argv[1] << ": there is no union Operation\n";
    return 65;
  }
  writeHeader(header, *kinds);
  writeEnums(enums, parser);
  return write(argv[2], header) && write(argv[3], enums) ? 0 : 73;
}
