// A copy from the leaves up by the schema itself, so that no table is named
// here. What is equal has equal children, which by then have one offset: a
// table is known by the bytes of its fields and the offsets of its children.
#include "lib/Plan/ShareTables.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "flatbuffers/reflection.h"
#include "meshwork/Plan/schema/Plan_bfbs.h"

namespace meshwork::plan {
namespace {

using flatbuffers::Offset;
using flatbuffers::Table;
using flatbuffers::uoffset_t;
using flatbuffers::VectorOfAny;
using reflection::BaseType;
using reflection::Field;
using reflection::Object;

/// Written from the high addresses down, so before the tables that point at it.
struct FieldCopy {
  const Field *field;
  uoffset_t child; // 0: its own bytes
  size_t bytes, alignment;
};

class Sharing {
public:
  std::optional<std::vector<uint8_t>> run(const Plan &plan) {
    const auto &root = reinterpret_cast<const Table &>(plan);
    builder.Finish(Offset<Table>(table(*schema.root_table(), root)),
                   PlanIdentifier());
    if (visited > maxTables(builder.GetSize()))
      return std::nullopt;
    return std::vector<uint8_t>(builder.GetBufferPointer(),
                                builder.GetBufferPointer() + builder.GetSize());
  }

private:
  const Object &object(const reflection::Type &type) const {
    return *schema.objects()->Get(static_cast<uoffset_t>(type.index()));
  }

  /// Whether a value of that type stands elsewhere and is pointed at.
  bool isApart(BaseType base, const reflection::Type &type) const {
    return base == BaseType::String || base == BaseType::Vector ||
           base == BaseType::Union ||
           (base == BaseType::Obj && !object(type).is_struct());
  }

  size_t sizeOf(BaseType base, const reflection::Type &type) const {
    return base == BaseType::Obj ? static_cast<size_t>(object(type).bytesize())
                                 : flatbuffers::GetTypeSize(base);
  }
  size_t alignmentOf(BaseType base, const reflection::Type &type) const {
    return base == BaseType::Obj ? static_cast<size_t>(object(type).minalign())
                                 : flatbuffers::GetTypeSize(base);
  }

  /// What `key` stands for, made unless it is known. Keys of different kinds
  /// begin with different letters.
  template <typename Make> uoffset_t once(std::string key, Make make) {
    auto [known, isNew] = offsets.try_emplace(std::move(key), 0);
    if (isNew)
      known->second = make();
    return known->second;
  }

  uoffset_t string(const flatbuffers::String &text) {
    return once("s" + text.str(), [&] {
      return builder.CreateString(text.c_str(), text.size()).o;
    });
  }

  uoffset_t element(const VectorOfAny &vector, uoffset_t i,
                    const reflection::Type &type) {
    if (type.element() == BaseType::String)
      return string(
          *flatbuffers::GetAnyVectorElemPointer<const flatbuffers::String>(
              &vector, i));
    return table(
        object(type),
        *flatbuffers::GetAnyVectorElemPointer<const Table>(&vector, i));
  }

  uoffset_t vectorOfChildren(const VectorOfAny &vector,
                             const reflection::Type &type) {
    std::vector<Offset<void>> children;
    for (uoffset_t i = 0; i < vector.size(); ++i)
      children.emplace_back(element(vector, i, type));
    std::string key = "c";
    key.append(reinterpret_cast<const char *>(children.data()),
               children.size() * sizeof(Offset<void>));
    return once(std::move(key),
                [&] { return builder.CreateVector(children).o; });
  }

  uoffset_t vectorOfBytes(const VectorOfAny &vector, size_t size,
                          size_t alignment) {
    size_t bytes = vector.size() * size;
    std::string key = "b" + std::to_string(size) + ":";
    key.append(reinterpret_cast<const char *>(vector.Data()), bytes);
    return once(std::move(key), [&] {
      builder.ForceVectorAlignment(vector.size(), size, alignment);
      builder.StartVector(bytes / alignment, alignment);
      builder.PushBytes(vector.Data(), bytes);
      return builder.EndVector(vector.size());
    });
  }

  uoffset_t vector(const VectorOfAny &vector, const reflection::Type &type) {
    if (isApart(type.element(), type))
      return vectorOfChildren(vector, type);
    return vectorOfBytes(vector, sizeOf(type.element(), type),
                         alignmentOf(type.element(), type));
  }

  uoffset_t child(const Object &parent, const Field &field,
                  const Table &table) {
    switch (field.type()->base_type()) {
    case BaseType::String:
      return string(*flatbuffers::GetFieldS(table, field));
    case BaseType::Vector:
      return vector(*table.GetPointer<const VectorOfAny *>(field.offset()),
                    *field.type());
    case BaseType::Union:
      return this->table(
          flatbuffers::GetUnionType(schema, parent, field, table),
          *flatbuffers::GetFieldT(table, field));
    default:
      return this->table(object(*field.type()),
                         *flatbuffers::GetFieldT(table, field));
    }
  }

  std::vector<FieldCopy> fieldsOf(const Object &object, const Table &table) {
    std::vector<FieldCopy> fields;
    for (const Field *field : *object.fields()) {
      if (!table.CheckField(field->offset()))
        continue;
      const reflection::Type &type = *field->type();
      BaseType base = type.base_type();
      if (isApart(base, type))
        fields.push_back({field, child(object, *field, table),
                          sizeof(uoffset_t), sizeof(uoffset_t)});
      else
        fields.push_back(
            {field, 0, sizeOf(base, type), alignmentOf(base, type)});
    }
    // As generated code does: less lies between them.
    std::ranges::sort(fields, {}, [](const FieldCopy &copy) {
      return std::pair(-static_cast<int64_t>(copy.alignment), copy.field->id());
    });
    return fields;
  }

  static std::string keyOf(const Object &object, const Table &table,
                           const std::vector<FieldCopy> &fields) {
    std::string key = "t" + object.name()->str() + ":";
    auto add = [&](const void *from, size_t bytes) {
      key.append(static_cast<const char *>(from), bytes);
    };
    for (const FieldCopy &copy : fields) {
      uint16_t id = copy.field->id();
      add(&id, sizeof(id));
      if (copy.child)
        add(&copy.child, sizeof(copy.child));
      else
        add(table.GetAddressOf(copy.field->offset()), copy.bytes);
    }
    return key;
  }

  uoffset_t write(const Table &table, const std::vector<FieldCopy> &fields) {
    uoffset_t start = builder.StartTable();
    for (const FieldCopy &copy : fields) {
      if (copy.child) {
        builder.AddOffset(copy.field->offset(), Offset<void>(copy.child));
        continue;
      }
      builder.Align(copy.alignment);
      builder.PushBytes(table.GetAddressOf(copy.field->offset()), copy.bytes);
      builder.TrackField(copy.field->offset(), builder.GetSize());
    }
    return builder.EndTable(start);
  }

  static bool staysApart(const Object &object) {
    std::string_view name = object.name()->c_str();
    return name == "meshwork.plan.Instruction" ||
           name == "meshwork.plan.List" || name == "meshwork.plan.Program";
  }

  uoffset_t table(const Object &object, const Table &table) {
    ++visited;
    std::vector<FieldCopy> fields = fieldsOf(object, table);
    if (staysApart(object))
      return write(table, fields);
    return once(keyOf(object, table, fields),
                [&] { return write(table, fields); });
  }

  const reflection::Schema &schema =
      *reflection::GetSchema(PlanBinarySchema::data());
  flatbuffers::FlatBufferBuilder builder{1 << 20};
  std::unordered_map<std::string, uoffset_t> offsets;
  uint64_t visited = 0;
};
} // namespace

std::optional<std::vector<uint8_t>> shareTables(const Plan &plan) {
  return Sharing().run(plan);
}

} // namespace meshwork::plan
