// A bundle as bytes: every part of it is changed once, and each change is found and named.

#include <cstring>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/base/digest.hpp"
#include "storage/bundle/packed_stream.hpp"
#include "storage/bundle/proof.hpp"
#include "storage/bundle/tar.hpp"
#include "tests/unit/storage/fixtures.hpp"

namespace kernelmill {

namespace bundle_test {

using namespace bundles;
using kernelmill::fixtures::make_tool_turn;
using kernelmill::fixtures::temporary_folder;
using nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string completion = "<KERNEL>int x;</KERNEL>" + std::string(5000, ' ');

Message<wire::Record> recorded_turn(const std::string& claimed) {
  return build<wire::Record>([&](wire::Record::Builder b) {
    auto turn = b.initTurn();
    auto e = turn.initEpisode();
    e.setRun("demo");
    e.setTask("native/row_sum");
    turn.setTurnId(turn_id({"demo", "native/row_sum", 0, 0}, 0));
    auto text = turn.initCompletion().initText().initArtifact();
    text.setSha256(sha256_hex(completion));
    text.setSize(completion.size());
    auto span = turn.initCandidate().initOfCompletion();
    span.setBegin(8);
    span.setSize(6);
    turn.setCandidateSha256(sha256_hex(claimed));
  });
}

class bundle : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_TRUE(make_key(folder_ / "key"));
    auto key = read_private_key(folder_ / "key");
    ASSERT_TRUE(key) << key.error().message;
    key_ = std::move(*key);
  }

  std::string make(const std::string& name, bool sign = true,
                   const std::string& claimed = "int x;") {
    return fill(name, bundle_writer::create(folder_ / name), sign, claimed);
  }

  std::string make_folder(const std::string& name, bool sign = true) {
    return fill(name, bundle_writer::create_folder(folder_ / name), sign, "int x;");
  }

  std::string fill(const std::string& name, expected<bundle_writer> to, bool sign,
                   const std::string& claimed) {
    EXPECT_TRUE(to.has_value());
    EXPECT_TRUE(to->add("manifest.json", "{}\n"));
    EXPECT_TRUE(to->add("empty.txt", ""));
    auto record = recorded_turn(claimed);
    EXPECT_TRUE(to->add(record_path("g0.e0.t0"), {record.data(), record.size()}));
    EXPECT_TRUE(to->add(artifact_path(sha256_hex(completion)), completion));
    ordered_json facts = {
        {"schema_version", 1}, {"form", "proof"}, {"run", "demo"}, {"signed", sign}};
    EXPECT_TRUE(to->finish(facts, sign ? key_.get() : nullptr));
    return folder_ / name;
  }

  static expected<read_bundle> look(const std::string& path, evp_pkey_st* trusted = nullptr) {
    return read(path, {}, trusted, [](const auto&, auto) { return expected<void>{}; });
  }

  /// All that was said of what is wrong; empty: it is good.
  static std::string trouble(const std::string& path) {
    auto x = look(path);
    if (!x) return x.error().category + ": " + x.error().message;
    std::string result;
    for (const auto& line : x->damaged) result += line + "\n";
    return result;
  }

  static std::string unpacked(const std::string& path) {
    auto from = unpacker::open(path);
    std::string all, part;
    do {
      EXPECT_TRUE(from->read(part, 4096));
      all += part;
    } while (!part.empty());
    return all;
  }

  std::string packed(const std::string& name, std::string_view tar) {
    auto file = atomic_file::create(folder_ / name);
    packer to{*file};
    EXPECT_TRUE(to.append(tar));
    EXPECT_TRUE(to.finish());
    EXPECT_TRUE(file->commit());
    return folder_ / name;
  }

  temporary_folder folder_;
  key_ptr key_;
};

std::string in_tar(const std::string& path, const std::string& bytes) {
  auto header = header_of({path, bytes.size()});
  return std::string{header.data(), header.size()} + bytes +
         std::string(padding_of(bytes.size()), '\0');
}

std::string tar_of(const std::vector<std::pair<std::string, std::string>>& files,
                   std::vector<listed_file> listed = {}) {
  std::string body;
  for (const auto& [path, bytes] : files) {
    body += in_tar(path, bytes);
    listed.push_back({path, bytes.size(), sha256_hex(bytes)});
  }
  return in_tar(list_path, list_text({{"schema_version", 1}}, listed)) + body +
         std::string(2 * tar_block, '\0');
}

TEST_F(bundle, what_was_written_is_read_and_good) {
  auto path = make("good");
  auto x = look(path, key_.get());
  ASSERT_TRUE(x) << x.error().message;
  EXPECT_THAT(x->damaged, IsEmpty());
  EXPECT_EQ(x->files.size(), 4u);
  EXPECT_EQ(x->public_key, public_hex(*key_));
  EXPECT_EQ(x->list["run"], "demo");
}

TEST_F(bundle, a_folder_is_read_as_a_file_is) {
  for (bool sign : {true, false}) {
    auto path = make_folder(sign ? "signed" : "unsigned", sign);
    auto x = look(path, sign ? key_.get() : nullptr);
    ASSERT_TRUE(x) << x.error().message;
    EXPECT_THAT(x->damaged, IsEmpty());
    EXPECT_EQ(x->files.size(), 4u);
    EXPECT_EQ(x->list_sha256, look(make("file", sign))->list_sha256);
  }
}

TEST_F(bundle, what_was_changed_in_a_folder_is_found) {
  namespace fs = std::filesystem;
  auto changed = [&](const std::string& name, const auto& change) {
    auto path = make_folder(name);
    change(path);
    return trouble(path);
  };
  EXPECT_THAT(changed("a", [](auto& x) { std::ofstream{x + "/manifest.json"} << "{}x"; }),
              HasSubstr("manifest.json was changed"));
  EXPECT_THAT(changed("b", [](auto& x) { std::ofstream{x + "/manifest.json"} << "{}xx"; }),
              HasSubstr("manifest.json has another size"));
  EXPECT_THAT(changed("c", [](auto& x) { fs::remove(x + "/empty.txt"); }),
              HasSubstr("empty.txt is missing"));
  EXPECT_THAT(changed("d", [](auto& x) { std::ofstream{x + "/records/more"} << "1"; }),
              HasSubstr("not listed: records/more"));
  EXPECT_THAT(changed("e", [](auto& x) { fs::create_symlink("/etc/passwd", x + "/link"); }),
              HasSubstr("link is no plain file"));
  EXPECT_THAT(changed("f", [](auto& x) { fs::remove(x + "/hashes.json"); }),
              HasSubstr("hashes.json is missing"));
  EXPECT_THAT(changed("g", [](auto& x) { fs::remove(x + "/signature.json"); }),
              HasSubstr("signature.json is missing"));
}

TEST_F(bundle, a_folder_that_holds_something_is_not_written) {
  auto path = make_folder("there");
  auto again = bundle_writer::create_folder(path);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().category, "directory_not_empty");
}

TEST_F(bundle, a_folder_that_cannot_be_made_is_refused_before_the_work) {
  auto path = make_folder("there");
  auto below = check_free_folder(path + "/manifest.json/deeper/bundle");
  ASSERT_FALSE(below);
  EXPECT_THAT(below.error().message, HasSubstr("manifest.json/deeper/bundle"));
  EXPECT_TRUE(check_free_folder(path + "/new/deeper"));
}

TEST_F(bundle, the_same_files_give_the_same_bytes) {
  EXPECT_EQ(*read_file(make("one")), *read_file(make("two")));
}

// Of every file of the archive, header and bytes: one byte of each block.
TEST_F(bundle, a_flipped_byte_of_any_part_is_found_and_its_file_named) {
  for (bool sign : {true, false}) {
    auto tar = unpacked(make("good", sign));
    std::string within;
    size_t left = 0;
    int flipped = 0;
    for (size_t at = 0; at + 2 * tar_block < tar.size(); at += tar_block) {
      if (left == 0) {
        auto entry = read_header(std::string_view{tar}.substr(at, tar_block));
        ASSERT_TRUE(entry);
        within = entry->path;
        left = (entry->size + tar_block - 1) / tar_block;
      } else {
        --left;
      }
      for (size_t offset : {size_t{0}, size_t{3}, size_t{130}, tar_block - 1}) {
        auto changed = tar;
        changed[at + offset] ^= 1;
        auto said = trouble(packed("changed", changed));
        EXPECT_NE(said, "") << within << " at " << offset;
        // An unsigned list that was changed accuses a file that is as it was: that cannot be known.
        if (within != list_path || sign) {
          EXPECT_THAT(said, HasSubstr(within)) << within << " at " << offset;
        }
        ++flipped;
      }
    }
    EXPECT_GT(flipped, 40);
  }
}

TEST_F(bundle, a_flipped_byte_of_the_compressed_stream_is_found) {
  auto good = *read_file(make("good"));
  for (size_t at = 0; at < good.size(); at += at < 32 || at + 64 > good.size() ? 1 : 5) {
    auto changed = good;
    changed[at] ^= 0x10;
    ASSERT_TRUE(write_file(folder_ / "changed", changed));
    EXPECT_NE(trouble(folder_ / "changed"), "") << "byte " << at << " of " << good.size();
  }
}

TEST_F(bundle, a_cut_at_any_byte_is_found) {
  auto good = *read_file(make("good"));
  for (size_t size = 0; size < good.size(); size += 7) {
    ASSERT_TRUE(write_file(folder_ / "cut", good.substr(0, size)));
    EXPECT_NE(trouble(folder_ / "cut"), "") << size;
  }
  ASSERT_TRUE(write_file(folder_ / "more", good + "x"));
  EXPECT_THAT(trouble(folder_ / "more"), HasSubstr("bytes behind"));
  ASSERT_TRUE(write_file(folder_ / "twice", good + good));
  EXPECT_THAT(trouble(folder_ / "twice"), HasSubstr("bytes behind"));
}

TEST_F(bundle, says_which_of_list_and_signature_was_changed) {
  auto tar = unpacked(make("good"));
  auto in_list = tar.find("manifest.json");
  ASSERT_NE(in_list, tar.npos);
  auto changed = tar;
  changed[in_list] ^= 1;
  EXPECT_THAT(trouble(packed("a", changed)), HasSubstr("hashes.json was changed"));
  auto in_signature = tar.find("\"signature\": \"") + 20;
  changed = tar;
  changed[in_signature] = changed[in_signature] == '0' ? '1' : '0';
  EXPECT_THAT(trouble(packed("b", changed)), HasSubstr("signature.json was changed"));
}

TEST_F(bundle, another_key_or_none_is_refused_where_one_was_named) {
  ASSERT_TRUE(make_key(folder_ / "other"));
  auto other = read_public_key(folder_ / "other.pub");
  ASSERT_TRUE(other);
  auto x = look(make("good"), other->get());
  ASSERT_FALSE(x);
  EXPECT_EQ(x.error().category, "bad_signature");
  EXPECT_THAT(x.error().message, HasSubstr(public_hex(*key_)));
  auto unsigned_one = look(make("plain", false), key_.get());
  ASSERT_FALSE(unsigned_one);
  EXPECT_THAT(unsigned_one.error().message, HasSubstr("is unsigned"));
}

TEST_F(bundle, doubles_strangers_and_gaps_are_refused) {
  std::string end(2 * tar_block, '\0');
  auto list = [](std::vector<listed_file> files) {
    return in_tar(list_path, list_text({{"schema_version", 1}}, files));
  };
  listed_file a{"a", 1, sha256_hex("1")}, b{"b", 1, sha256_hex("2")};
  EXPECT_THAT(trouble(packed("x", list({a}) + in_tar("a", "1") + in_tar("a", "1") + end)),
              HasSubstr("two files a"));
  EXPECT_THAT(trouble(packed("x", list({a}) + in_tar("a", "1") + in_tar("b", "2") + end)),
              HasSubstr("not listed: b"));
  EXPECT_THAT(trouble(packed("x", list({a, b}) + in_tar("b", "2") + end)),
              HasSubstr("a is missing"));
  EXPECT_THAT(trouble(packed("x", list({a, b}) + in_tar("a", "1") + end)),
              HasSubstr("b is missing"));
  EXPECT_THAT(trouble(packed("x", list({a, a}) + end)), HasSubstr("named twice"));
  EXPECT_THAT(trouble(packed("x", list({a}) + in_tar("a", "12") + end)), HasSubstr("2 bytes"));
  EXPECT_THAT(trouble(packed("x", in_tar("a", "1") + end)), HasSubstr("hashes.json is missing"));
}

TEST_F(bundle, paths_that_leave_their_folder_are_refused) {
  for (const char* path :
       {"/etc/passwd", "../up", "a/../../up", "a//b", "./a", "a/", "a b", "a\\b"}) {
    EXPECT_NE(wrong_path(path), "") << path;
    EXPECT_THAT(trouble(packed("x", tar_of({}, {{path, 1, sha256_hex("1")}}))),
                HasSubstr("refused"))
        << path;
    EXPECT_THAT(trouble(packed("y", tar_of({}).substr(0, 1024) + in_tar(path, "1"))),
                Not(IsEmpty()))
        << path;
  }
}

TEST_F(bundle, links_and_folders_are_refused) {
  for (auto [type, name] : {std::pair{'1', "hard link"},
                            {'2', "symbolic link"},
                            {'5', "folder"},
                            {'3', "device"},
                            {'L', "no plain file"}}) {
    auto tar = tar_of({{"a", "1"}});
    auto at = tar.find("ustar", tar_block) - 257;
    tar[at + 156] = type;
    EXPECT_THAT(trouble(packed("x", tar)), HasSubstr(name));
  }
}

TEST_F(bundle, a_bomb_is_refused_before_it_is_unpacked) {
  std::vector<listed_file> huge;
  for (int i = 0; i < 40; ++i)
    huge.push_back({"f" + std::to_string(i), largest_file, sha256_hex("1")});
  EXPECT_THAT(trouble(packed("x", tar_of({}, huge))), HasSubstr("more than is accepted"));
  // Bytes that no list promises: the second file ends reading, however long it is.
  auto tar = tar_of({{"a", "1"}});
  tar.resize(tar.size() - 2 * tar_block);
  auto said = trouble(packed("y", tar + in_tar("b", std::string(64 << 20, '\0'))));
  EXPECT_THAT(said, HasSubstr("not listed: b"));
}

TEST_F(bundle, a_proof_holds_what_its_records_say) {
  proof_check check;
  auto take = [&](const auto& file, std::string_view bytes) {
    check.take(file, bytes);
    return expected<void>{};
  };
  ASSERT_TRUE(read(make("good"), {}, nullptr, take));
  EXPECT_THAT(check.finish("demo"), IsEmpty());
  EXPECT_EQ(check.turns(), 1u);
  EXPECT_EQ(check.artifacts(), 1u);
  EXPECT_THAT(check.finish("else"), ElementsAre(HasSubstr("another run")));
}

TEST_F(bundle, a_proof_has_the_texts_of_tool_calls_and_candidates) {
  auto record = build<wire::Record>([&](wire::Record::Builder x) {
    auto made = make_tool_turn(0, 0, 0, "c1", "c0", "int x;");
    x.setTurn(made.open()->getTurn());
    x.getTurn().getCalls()[0].getObservation().initArtifact().setSha256(std::string(64, 'a'));
    x.getTurn().getCandidates()[0].getPatch().initArtifact().setSha256(std::string(64, 'b'));
  });
  EXPECT_THAT(artifacts_of(*record.open()),
              ElementsAre(std::string(64, 'a'), std::string(64, 'b')));
  auto check_of = [](const Message<wire::Record>& x) {
    proof_check check;
    check.take({record_path("g0.e0.t0"), x.size(), {}}, {x.data(), x.size()});
    return check.finish("demo");
  };
  auto said = check_of(record);
  EXPECT_THAT(said, ElementsAre(HasSubstr("missing, aaaa"), HasSubstr("missing, bbbb")));
  auto lie = build<wire::Record>([&](wire::Record::Builder x) {
    auto made = make_tool_turn(0, 0, 0, "c1", "c0", "int x;");
    x.setTurn(made.open()->getTurn());
    x.getTurn().getCandidates()[0].getSource().setInline("int y;");
  });
  EXPECT_THAT(check_of(lie), ElementsAre(HasSubstr("candidate of its graph has another SHA-256")));
}

TEST_F(bundle, a_proof_whose_signer_lied_of_a_candidate_is_found) {
  proof_check check;
  auto take = [&](const auto& file, std::string_view bytes) {
    check.take(file, bytes);
    return expected<void>{};
  };
  ASSERT_TRUE(read(make("lie", true, "int y;"), {}, nullptr, take));
  EXPECT_THAT(check.finish("demo"),
              ElementsAre(HasSubstr("records/g0.e0.t0.capnp: its candidate has another SHA-256")));
}

TEST_F(bundle, keys_are_private_and_never_written_over) {
  auto again = make_key(folder_ / "key");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().category, "credentials_exist");
  std::filesystem::permissions(folder_ / "key", std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  EXPECT_EQ(read_private_key(folder_ / "key").error().category, "credentials_exposed");
  ASSERT_TRUE(write_file(folder_ / "text", "no key"));
  EXPECT_EQ(read_public_key(folder_ / "text").error().category, "bad_key");
  EXPECT_EQ(read_public_key(folder_ / "nothing").error().category, "credentials_missing");
}

} // namespace bundle_test

} // namespace kernelmill
