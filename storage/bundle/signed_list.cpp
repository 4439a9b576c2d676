#include "storage/bundle/signed_list.hpp"

#include "messages/base/digest.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::bundles {

namespace {

constexpr const char* algorithm = "ed25519";

std::string signed_words(const std::string& list_sha256) {
  return "kernelmill bundle 1 sha256:" + list_sha256;
}

tl::unexpected<error> bad_signature(std::string why, const char* hint) {
  return configuration_error("bad_signature", "failed to verify the bundle: " + std::move(why),
                             hint);
}

} // namespace

expected<std::string> signature_text(evp_pkey_st& key, const std::string& list_sha256) {
  auto signature = sign(key, signed_words(list_sha256));
  KM_TRY(signature);
  nlohmann::ordered_json document = {{"schema_version", bundle_schema_version},
                                     {"algorithm", algorithm},
                                     {"list_sha256", list_sha256},
                                     {"public_key", public_hex(key)},
                                     {"signature", *signature}};
  return document.dump(1) + "\n";
}

expected<std::string> check_signature(std::string_view text, const std::string& list_sha256,
                                      evp_pkey_st* trusted) {
  constexpr const char* again = "ask for the bundle again; this one was changed";
  auto document = nests_deeper(text) ? nlohmann::ordered_json{}
                                     : nlohmann::ordered_json::parse(text, nullptr, false);
  auto word = [&](const char* name) {
    auto found = document.is_object() ? document.find(name) : document.end();
    return found != document.end() && found->is_string() ? found->get<std::string>() : "";
  };
  auto signed_list = word("list_sha256"), by = word("public_key");
  auto embedded = public_key_of(by);
  // Written by us it has one form; another one says that a byte of it was changed.
  nlohmann::ordered_json own = {{"schema_version", bundle_schema_version},
                                {"algorithm", algorithm},
                                {"list_sha256", signed_list},
                                {"public_key", by},
                                {"signature", word("signature")}};
  if (!embedded || own.dump(1) + "\n" != text ||
      !is_signed(**embedded, signed_words(signed_list), word("signature")))
    return bad_signature(std::string{signature_path} + " was changed: its signature does not fit",
                         again);
  if (signed_list != list_sha256)
    return bad_signature(
        std::string{list_path} + " was changed: it is not the list that was signed", again);
  if (trusted && public_hex(*trusted) != by)
    return bad_signature("it is signed by the key " + by + ", not by the one that you named",
                         "ask the sender which key is theirs");
  return by;
}

expected<read_bundle> open_list(std::string_view list, const limits& most, evp_pkey_st* trusted,
                                const std::function<expected<std::string>()>& signature) {
  read_bundle result;
  result.list_sha256 = sha256_hex(list);
  auto parsed = parse_list(list, most);
  // A signed list that was changed is reported as such, before what the change broke.
  bool has_signature = !parsed || parsed->facts.value("signed", nlohmann::ordered_json{}) == true;
  if (has_signature) {
    auto text = signature();
    if (!text && !parsed) return tl::unexpected<error>{parsed.error()};
    KM_TRY(text);
    auto by = check_signature(*text, result.list_sha256, trusted);
    KM_TRY(by);
    result.public_key = *by;
  }
  KM_TRY(parsed);
  if (trusted && !has_signature)
    return configuration_error("bad_signature",
                               "failed to verify the bundle: it is unsigned, and you named a key",
                               "ask for a signed bundle, or leave --public-key out");
  result.list = std::move(parsed->facts);
  result.files = std::move(parsed->files);
  return result;
}

std::string wrong_bytes(const listed_file& want, const std::string& sha256) {
  if (sha256 == want.sha256) return {};
  return want.path + " was changed: its SHA-256 is not the listed one";
}

} // namespace kernelmill::bundles
