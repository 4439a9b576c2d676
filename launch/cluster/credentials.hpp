#pragma once

// The credentials of a cluster: a certificate authority that signs for this cluster only, and one
// certificate that all of its machines show. A machine that holds node.key is a node; CAF's wire
// protocol checks nothing beyond it.

#include <string>

#include "messages/error.hpp"

namespace kernelmill {

/// Paths of the three files that a machine of the cluster needs.
struct cluster_credentials {
  std::string directory;
  std::string ca;          ///< ca.pem
  std::string certificate; ///< node.pem
  std::string key;         ///< node.key
};

/// $KERNELMILL_CREDENTIALS, else $XDG_STATE_HOME/kernelmill/cluster, else
/// ~/.local/state/kernelmill/cluster; empty when none of the variables is set.
std::string default_credentials_directory();

/// Makes the authority and the certificate in `directory`, which must not exist or be empty. Either
/// all files appear, or none. ca.key lies beside them; only making another certificate needs it.
expected<cluster_credentials> make_credentials(const std::string& directory);

/// Finds the three files and checks that a cluster can rest on them: they are there and readable,
/// no other user may read the key, the certificate is the authority's, for both ends of a
/// connection, belongs to the key, and is valid today.
expected<cluster_credentials> find_credentials(const std::string& directory);

} // namespace kernelmill
