// Our own modules, which keep to a few forms: imports of one line, and exports before what they
// name.

#include <map>
#include <set>
#include <sstream>

#include "launch/server/page/stored_page.hpp"

namespace kernelmill::page {

namespace {

struct module_parts {
  std::vector<std::pair<std::string, std::string>> imports; ///< names in braces, and the module
  std::vector<std::string> exports;
  std::string body;
};

/// The name behind "export function" and its like; empty: the line exports nothing.
std::string exported_name(std::string_view line) {
  for (std::string_view form :
       {"export async function ", "export function ", "export const ", "export class "})
    if (line.starts_with(form)) {
      auto rest = line.substr(form.size());
      return std::string{rest.substr(0, rest.find_first_of(" (="))};
    }
  return {};
}

module_parts read_module(const std::string& text) {
  module_parts result;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    if (auto from = line.find("} from './"); line.starts_with("import {") && from != line.npos) {
      auto name = from + 10;
      result.imports.emplace_back(line.substr(7, from - 6),
                                  line.substr(name, line.find('\'', name) - name));
      continue;
    }
    if (auto name = exported_name(line); !name.empty()) {
      result.exports.push_back(name);
      line.erase(0, std::string_view{"export "}.size());
    }
    result.body += line + "\n";
  }
  return result;
}

std::string variable_of(const std::string& module) {
  return "module_" + module.substr(0, module.find('.'));
}

class bundler {
public:
  explicit bundler(const std::vector<module_text>& modules) {
    for (const auto& x : modules) modules_[x.name] = read_module(x.text);
  }

  expected<std::string> all() {
    for (const auto& [name, parts] : modules_) KM_TRY(add(name));
    return "'use strict';\n" + text_;
  }

private:
  expected<void> add(const std::string& name) {
    auto found = modules_.find(name);
    if (done_.contains(name)) return {};
    if (found == modules_.end() || !begun_.insert(name).second)
      return configuration_error("config_inconsistent",
                                 "failed to join the page's modules at " + name +
                                     ": it is missing, or needs a module that needs it",
                                 "");
    const auto& x = found->second;
    std::string head, returned;
    for (const auto& [names, from] : x.imports) {
      KM_TRY(add(from));
      head += "const " + names + " = " + variable_of(from) + ";\n";
    }
    for (const auto& one : x.exports) returned += (returned.empty() ? "" : ", ") + one;
    text_ += "const " + variable_of(name) + " = (() => {\n" + head + x.body + "return {" +
             returned + "};\n})();\n";
    done_.insert(name);
    return {};
  }

  std::map<std::string, module_parts> modules_;
  std::set<std::string> begun_, done_;
  std::string text_;
};

} // namespace

expected<std::string> one_script(const std::vector<module_text>& modules) {
  return bundler{modules}.all();
}

} // namespace kernelmill::page
