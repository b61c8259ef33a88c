// The row of the embedding that padding has.
#include "lib/Import/DecoderConfig.h"

#include "meshwork/Text/Counted.h"

#include <algorithm>

namespace meshwork::importer {
namespace {

/// Whether `id` is the token, or one of the tokens, of this key.
bool isToken(Config &config, const char *key, int64_t id) {
  const Json *found = config.find(key);
  auto isId = [&](const Json &one) {
    return one.kind == Json::Kind::integer && one.integer == id;
  };
  return found && (isId(*found) || (found->kind == Json::Kind::array &&
                                    std::any_of(found->items.begin(),
                                                found->items.end(), isId)));
}

/// A token of the data that is the padding too never learns, unless the head
/// shares its row.
void warnOfPadding(Config &config, const Decoder &m) {
  for (const char *key : {"eos_token_id", "bos_token_id"})
    if (!m.tied && isToken(config, key, *m.padding))
      config.warning("pad_token_id",
                     "is " + std::to_string(*m.padding) + ", and so is " + key +
                         ": the embedding of this token gets no gradient and "
                         "does not learn; set pad_token_id to null if the "
                         "data holds the token");
}

/// Of a class that has one where the key is missing.
void readClassPadding(Config &config, const Family &family, Decoder &m) {
  m.padding = family.padding;
  if (*m.padding >= m.vocabulary)
    config.error("pad_token_id",
                 "missing, so it is " + std::string(family.type) +
                     "'s default " + std::to_string(*m.padding) +
                     ", expected null or a token below vocab_size, " +
                     std::to_string(m.vocabulary));
}

} // namespace

void readPadding(Config &config, const Family &family, Decoder &m) {
  if (!family.pads)
    return;
  const Json *id = config.find("pad_token_id");
  if (!id && family.padding)
    return readClassPadding(config, family, m);
  if (config.isNull("pad_token_id"))
    return;
  if (id->kind != Json::Kind::integer || id->integer < -m.vocabulary ||
      id->integer >= m.vocabulary) {
    config.error("pad_token_id", "found " + id->found() +
                                     ", expected null or a token below "
                                     "vocab_size, " +
                                     std::to_string(m.vocabulary));
    return;
  }
  m.padding = id->integer < 0 ? id->integer + m.vocabulary : id->integer;
  if (id->integer < 0)
    config.warning("pad_token_id",
                   "found " + id->found() + ", taken as token " +
                       std::to_string(*m.padding) +
                       ", whose embedding gets no gradient; PyTorch counts "
                       "from the end; expected null if there is none");
  warnOfPadding(config, m);
}

} // namespace meshwork::importer
