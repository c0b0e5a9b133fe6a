// The files a configuration is read from. Each is bounded at 1 MiB and never waited for; why one cannot be read is told in
// a person's words. Nothing here knows a key.

import Glibc

struct ConfigurationFile {
  static let largest = 1 << 20
  let path: String

  /// FILE and FILE.d/*.toml, in the order of their names. That none of them exists is a problem.
  static func all(of path: String) throws(ConfigurationProblem) -> [ConfigurationFile] {
    let further = try names(in: path + ".d").map { ConfigurationFile(path: "\(path).d/\($0)") }
    guard access(path, F_OK) == 0 || errno != ENOENT else {
      guard further.isEmpty else { return further }
      throw ConfigurationProblem(
        Place(file: path), "no such file; create it with the devices you have, for example:\n\(Configuration.example)")
    }
    return [ConfigurationFile(path: path)] + further
  }

  /// The *.toml of a folder beside FILE, in the order of their names; none where there is no such folder.
  static func all(in folder: String, beside path: String) throws(ConfigurationProblem) -> [ConfigurationFile] {
    let directory = path.lastIndex(of: "/").map { path[...$0] + folder } ?? folder[...]
    return try names(in: String(directory)).map { ConfigurationFile(path: "\(directory)/\($0)") }
  }

  /// The file's contents as a tree.
  func table() throws(ConfigurationProblem) -> TOML.Table {
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try Files.contents(of: path, limit: ConfigurationFile.largest)
    } catch {
      throw problem(error.code)
    }
    do throws(TOML.SyntaxError) {
      return try TOML.parse(bytes, file: path)
    } catch {
      let remedy = ConfigurationFile.earlier(error, in: bytes) ?? ConfigurationFile.remedy(for: error.text)
      throw ConfigurationProblem(error.place, "\(printable(error.text)); \(remedy)")
    }
  }

  private func problem(_ code: Int32) -> ConfigurationProblem {
    let text =
      switch code {
      case EACCES, EPERM: "no permission to read it; make it readable for user \(Accounts.ownName)"
      case EISDIR: "is a directory; name a file, or put files into \(path).d"
      case ENOENT: "no such file; remove the link to it, or create it"
      case EINVAL: "is a pipe; name a file"
      case EFBIG: "larger than 1 MiB; is this the right file?"
      default: "cannot be read (\(systemWords(code))); check the file and its disk"
      }
    return ConfigurationProblem(Place(file: path), text)
  }

  private static func names(in directory: String) throws(ConfigurationProblem) -> [String] {
    do throws(FileError) {
      return try Files.names(in: directory).filter { $0.hasSuffix(".toml") && !$0.hasPrefix(".") }
    } catch {
      switch error.code {
      case ENOENT: return []
      case ENOTDIR: throw ConfigurationProblem(Place(file: directory), "not a directory; move the file into one of this name")
      default: throw ConfigurationProblem(Place(file: directory), "cannot be read; check its permissions")
      }
    }
  }

  /// Where a section that stands there twice stood first.
  private static func earlier(_ error: TOML.SyntaxError, in bytes: [UInt8]) -> String? {
    guard error.text.contains("redefine") else { return nil }
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    let header = { (line: ArraySlice<UInt8>) in
      line.prefix { $0 != UInt8(ascii: "#") }.filter { !Set(" \t\r\"'".utf8).contains($0) }
    }
    guard lines.indices.contains(error.place.line - 1), case let wrong = header(lines[error.place.line - 1]),
      wrong.first == UInt8(ascii: "[")
    else { return nil }
    guard let first = lines[..<(error.place.line - 1)].firstIndex(where: { header($0) == wrong }) else { return nil }
    return "it stands in line \(first + 1) already: keep one of the two, or give it another name"
  }

  private static func remedy(for text: String) -> String {
    if text.contains("utf-8") { return "save the file as UTF-8" }
    if text.contains("redefine") { return "keep one of the two" }
    if text.contains("expected '='") { return "write KEY = VALUE" }
    if text.contains("value") { return "texts stand in quotes, as in kind = \"obd\"" }
    if text.contains("dots") { return "break it up" }
    return "write [device.NAME], then lines of KEY = VALUE"
  }
}
