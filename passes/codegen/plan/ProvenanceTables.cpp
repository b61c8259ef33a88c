// Notes of the sharding passes, with what layers share written once.
#include "passes/codegen/plan/ProvenanceTables.h"

#include "lib/Spec/FilePath.h"
#include "meshwork/Plan/LayerNames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace meshwork::codegen {
namespace {

constexpr uint32_t none = UINT32_MAX;

class Tables {
public:
  Tables(const mesh::Provenance &notes, const spec::Spec &spec,
         const Origins &origins)
      : notes(notes), spec(spec), origins(origins) {}

  std::unique_ptr<plan::ProvenanceT> run() {
    for (size_t i = 0; i < notes.values.size(); ++i)
      if (isKept(notes.values[i]))
        places[i] = places.size();
    for (auto [i, place] : places) {
      auto [scope, leaf] =
          plan::splitAtLayer(notes.values[i].name, notes.values[i].layer);
      table->values.emplace_back(
          number(table->scopes, scopes, std::string(scope)),
          number(table->leaves, leaves, std::string(leaf)),
          story(notes.values[i], place));
    }
    return std::move(table);
  }

private:
  /// Of @update only state, which has a name of its own, and what moves.
  static bool isKept(const mesh::ValueStory &value) {
    return !value.moves.empty() ||
           (!value.dims.empty() && (!value.inUpdate || value.isState));
  }

  static uint32_t number(std::vector<std::string> &list,
                         std::map<std::string, uint32_t> &known,
                         const std::string &text) {
    auto [at, isNew] = known.try_emplace(text, list.size());
    if (isNew)
      list.push_back(text);
    return at->second;
  }

  uint32_t annotation(const std::string &key) {
    if (key.empty())
      return none;
    auto [at, isNew] = annotations.try_emplace(key, table->annotations.size());
    if (isNew) {
      auto entry = std::make_unique<plan::AnnotationT>();
      entry->key = key;
      std::tie(entry->value, entry->place) = describe(key);
      table->annotations.push_back(std::move(entry));
    }
    return at->second;
  }

  /// Value and place of a key; of a pin, those of the pin.
  std::pair<std::string, std::string> describe(llvm::StringRef key) const {
    if (key.consume_front("shard.tensor "))
      for (const spec::TensorPin &pin : spec.pins)
        if (pin.name == key)
          return {pin.dims, spec::nameOf(pin.place)};
    auto origin = origins.find(key.str());
    return {spec::valueOf(spec, key.str()).value_or(""),
            origin == origins.end() ? "default" : spec::nameOf(origin->second)};
  }

  uint32_t story(const mesh::ValueStory &value, size_t place) {
    auto entry = std::make_unique<plan::ValueStoryT>();
    std::string key;
    auto add = [&](const std::string &text) { key += text + '\0'; };
    for (const mesh::DimStory &dim : value.dims) {
      auto story = std::make_unique<plan::DimStoryT>();
      story->name = dim.name;
      add("dim " + dim.name);
      for (const mesh::DimCause &cause : dim.causes) {
        story->causes.push_back(this->cause(cause, place));
        const plan::DimCauseT &last = *story->causes.back();
        for (const std::string &text :
             {last.axis, std::to_string(last.annotation), last.op, last.factor,
              std::to_string(last.back), std::to_string(last.dim)})
          add(text);
      }
      entry->dims.push_back(std::move(story));
    }
    for (const mesh::Move &move : value.moves) {
      entry->moves.push_back(moveTable(move));
      for (const std::string &text : {std::string("move"), move.from, move.to,
                                      entry->moves.back()->reason, move.phase})
        add(text);
      for (const mesh::Move::Step &step : move.steps)
        add(step.text + " " + std::to_string(step.bytesSent));
    }
    auto [at, isNew] = stories.try_emplace(key, table->stories.size());
    if (isNew)
      table->stories.push_back(std::move(entry));
    return at->second;
  }

  /// Over values that are left out, to one that stays or to the annotation.
  const mesh::DimCause &shortened(const mesh::DimCause &cause) const {
    const mesh::DimCause *last = &cause;
    for (size_t steps = 0;
         steps < notes.values.size() && last->annotation.empty() &&
         !places.contains(last->from);
         ++steps) {
      const std::vector<mesh::DimStory> &dims = notes.values[last->from].dims;
      if (last->fromDim >= dims.size())
        return *last;
      auto next = llvm::find_if(
          dims[last->fromDim].causes,
          [&](const mesh::DimCause &one) { return one.axis == cause.axis; });
      if (next == dims[last->fromDim].causes.end())
        return *last;
      last = &*next;
    }
    return *last;
  }

  std::unique_ptr<plan::DimCauseT> cause(const mesh::DimCause &given,
                                         size_t place) {
    const mesh::DimCause &cause = shortened(given);
    auto entry = std::make_unique<plan::DimCauseT>();
    entry->axis = cause.axis;
    entry->annotation = annotation(cause.annotation);
    entry->op = cause.op;
    entry->factor = cause.factor;
    if (cause.annotation.empty())
      if (auto from = places.find(cause.from); from != places.end()) {
        entry->back =
            static_cast<int32_t>(place) - static_cast<int32_t>(from->second);
        entry->dim = cause.fromDim;
      }
    return entry;
  }

  static std::unique_ptr<plan::MoveT> moveTable(const mesh::Move &move) {
    auto entry = std::make_unique<plan::MoveT>();
    entry->from = move.from;
    entry->to = move.to;
    entry->reason = move.reason;
    entry->phase = move.phase;
    for (const mesh::Move::Step &step : move.steps) {
      entry->steps.push_back(std::make_unique<plan::MoveStepT>());
      entry->steps.back()->text = step.text;
      entry->steps.back()->bytes_sent = step.bytesSent;
    }
    return entry;
  }

  const mesh::Provenance &notes;
  const spec::Spec &spec;
  const Origins &origins;
  std::unique_ptr<plan::ProvenanceT> table =
      std::make_unique<plan::ProvenanceT>();
  std::map<size_t, size_t> places; // of notes that are kept, in the table
  std::map<std::string, uint32_t> scopes, leaves, stories, annotations;
};
} // namespace

std::unique_ptr<plan::ProvenanceT>
provenanceTables(const mesh::Provenance &notes, const spec::Spec &spec,
                 const Origins &origins) {
  return notes.values.empty() ? nullptr : Tables(notes, spec, origins).run();
}

} // namespace meshwork::codegen
