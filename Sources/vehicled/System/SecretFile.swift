// Files with secrets in them: systemd's credentials, and files of the administrator that nobody but the daemon's user can read.
// What is in them goes into the machine and nowhere else.

import Glibc
import Protocols

enum SecretFile {
  private static let longest = 1024

  /// Reads a path, or the systemd credential of this name.
  static func read(
    _ name: String, credentials: String? = getenv("CREDENTIALS_DIRECTORY").map { String(cString: $0) }
  ) throws(ValueError) -> SecretBytes {
    let path = try path(of: name, credentials)
    var status = stat()
    guard stat(path, &status) == 0 else {
      throw ValueError("cannot read \(path): \(systemWords(errno)); write the secret into it, with mode 0600")
    }
    guard status.st_mode & S_IFMT == S_IFREG else { throw ValueError("\(path) is no file; name the file that the secret is in") }
    // systemd guards its credentials by the folder, and may let root's group read them.
    let isGuarded = !name.hasPrefix("/") || status.st_mode & 0o077 == 0
    guard isGuarded else { throw ValueError("others may read \(path); chmod 600 \(path)") }
    var bytes = try Files.read(path, limit: longest)
    while let last = bytes.last, last <= 0x20 { bytes.removeLast() }
    guard !bytes.isEmpty else { throw ValueError("\(path) is empty; write the secret into it") }
    return SecretBytes(bytes)
  }

  private static func path(of name: String, _ credentials: String?) throws(ValueError) -> String {
    if name.hasPrefix("/") { return name }
    guard !name.isEmpty, !name.contains("/"), !name.hasPrefix(".") else {
      throw ValueError("\"\(name)\" is neither a path nor the name of a credential; write /PATH, or a name of LoadCredential=")
    }
    guard let folder = credentials, !folder.isEmpty else {
      throw ValueError(
        "there are no systemd credentials here, so \"\(name)\" is none; write /PATH, or LoadCredential=\(name):/PATH in the unit")
    }
    return "\(folder)/\(name)"
  }
}
