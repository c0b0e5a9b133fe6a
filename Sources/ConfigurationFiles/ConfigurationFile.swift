// The files of a configuration: at most 1 MiB each, read without blocking on pipes. Errors name the file and the remedy. Keys are
// checked elsewhere.

import Glibc
import ServiceRuntime

public struct ConfigurationFile {
  /// The examples in the messages of one program.
  public struct Examples: Sendable {
    /// The remedy for a missing file.
    let missing: String
    /// The contents of an example file.
    let file: String
    /// The header of a section, such as `[device.NAME]`.
    let section: String
    /// A line with a string.
    let string: String

    public init(missing: String, file: String, section: String, string: String) {
      (self.missing, self.file, self.section, self.string) = (missing, file, section, string)
    }
  }

  public static let maxSize = 1 << 20
  let path: String
  let examples: Examples

  /// Returns FILE, then FILE.d/*.toml, sorted by name. Throws if `isRequired` is true and none of them exists.
  public static func all(
    of path: String, _ examples: Examples, isRequired: Bool = true
  ) throws(ConfigurationProblem) -> [ConfigurationFile] {
    let dropIns = try names(in: path + ".d").map { ConfigurationFile(path: "\(path).d/\($0)", examples: examples) }
    guard access(path, F_OK) == 0 || errno != ENOENT else {
      guard dropIns.isEmpty, isRequired else { return dropIns }
      throw ConfigurationProblem(
        SourceLocation(file: path), "no such file; \(examples.missing), for example:\n\(examples.file)")
    }
    return [ConfigurationFile(path: path, examples: examples)] + dropIns
  }

  /// Merges FILE and FILE.d/*.toml in the order of their names: tables merge key by key, and the later file wins. The problems of files that
  /// cannot be read or parsed are added to `problems`.
  public static func merged(
    _ path: String, _ examples: Examples, isRequired: Bool = true, _ problems: inout [ConfigurationProblem]
  ) -> TOML.Table {
    var root = TOML.Table()
    do throws(ConfigurationProblem) {
      for file in try all(of: path, examples, isRequired: isRequired) {
        do throws(ConfigurationProblem) {
          root.merge(try file.table())
        } catch {
          problems.append(error)
        }
      }
    } catch {
      problems.append(error)
    }
    return root
  }

  /// Returns the *.toml files in a folder next to FILE, sorted by name, or none if there is no such folder.
  public static func all(
    in folder: String, beside path: String, _ examples: Examples
  ) throws(ConfigurationProblem) -> [ConfigurationFile] {
    let directory = path.lastIndex(of: "/").map { path[...$0] + folder } ?? folder[...]
    return try names(in: String(directory)).map { ConfigurationFile(path: "\(directory)/\($0)", examples: examples) }
  }

  /// Parses the file into a tree.
  public func table() throws(ConfigurationProblem) -> TOML.Table {
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try Files.contents(of: path, limit: ConfigurationFile.maxSize)
    } catch {
      throw problem(error.code)
    }
    do throws(TOML.SyntaxError) {
      return try TOML.parse(bytes, file: path)
    } catch {
      throw ConfigurationProblem(error.location, message(for: error, in: bytes))
    }
  }

  private func problem(_ code: Int32) -> ConfigurationProblem {
    let text =
      switch code {
      case EACCES, EPERM: "permission denied; make it readable for user \(Accounts.ownName)"
      case EISDIR: "is a directory; use a file, or put files into \(path).d"
      case ENOENT: "no such file; remove the symbolic link, or create its target"
      case EINVAL: "is a pipe; use a regular file"
      case EFBIG: "larger than 1 MiB; check that it is the right file"
      default: "cannot read it: \(errnoMessage(code)); check the file and its disk"
      }
    return ConfigurationProblem(SourceLocation(file: path), text)
  }

  private static func names(in directory: String) throws(ConfigurationProblem) -> [String] {
    do throws(FileError) {
      return try Files.names(in: directory).filter { $0.hasSuffix(".toml") && !$0.hasPrefix(".") }
    } catch {
      switch error.code {
      case ENOENT: return []
      case ENOTDIR:
        throw ConfigurationProblem(SourceLocation(file: directory), "not a directory; move the file into a directory of this name")
      default:
        throw ConfigurationProblem(SourceLocation(file: directory), "cannot read it: \(errnoMessage(error.code)); check its permissions")
      }
    }
  }

  /// Returns the message for a syntax error, based on the parser's `Error while parsing CONTEXT: REASON`.
  private func message(for error: TOML.SyntaxError, in bytes: [UInt8]) -> String {
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    let text = printable(error.text)
    let parts = text.split(separator: ": ", maxSplits: 1)
    guard parts.count == 2, let context = parts[0].split(separator: "parsing ").last.map(String.init) else {
      return "\(text); \(remedy(for: text, in: ""))"
    }
    let reason = String(parts[1])
    if context.contains("string"), let quote = Self.missingQuote(error, isLiteral: context.contains("literal"), in: lines) {
      return "string is not closed; add \(quote) at the end"
    }
    if reason.contains("redefine") {
      let first = Self.earlierHeader(error, in: lines).map { "line \($0) already defines it; " } ?? ""
      return "\(reason); \(first)remove or rename one of the two"
    }
    return "syntax error in \(context): \(reason); \(remedy(for: reason, in: context))"
  }

  /// The quote that is missing at the end of an unclosed string; nil if the string has another error.
  private static func missingQuote(_ error: TOML.SyntaxError, isLiteral: Bool, in lines: [ArraySlice<UInt8>]) -> String? {
    guard lines.indices.contains(error.location.line - 1) else { return nil }
    let line = String(decoding: lines[error.location.line - 1], as: UTF8.self)
    let quote = isLiteral ? "'" : "\""
    let triple = quote + quote + quote
    if error.text.contains("end-of-file") { return line.contains(triple) || !line.contains(quote) ? triple : quote }
    // The parser reports the line break in an unclosed single-line string as a control character.
    let end = line.unicodeScalars.count - (line.unicodeScalars.last == "\r" ? 1 : 0)
    return error.text.contains("control characters") && error.location.column > end ? quote : nil
  }

  /// The line of the first of two equal section headers.
  private static func earlierHeader(_ error: TOML.SyntaxError, in lines: [ArraySlice<UInt8>]) -> Int? {
    let header = { (line: ArraySlice<UInt8>) in
      line.prefix { $0 != UInt8(ascii: "#") }.filter { !Set(" \t\r\"'".utf8).contains($0) }
    }
    guard lines.indices.contains(error.location.line - 1), case let wrong = header(lines[error.location.line - 1]),
      wrong.first == UInt8(ascii: "[")
    else { return nil }
    guard let first = lines[..<(error.location.line - 1)].firstIndex(where: { header($0) == wrong }) else { return nil }
    return first + 1
  }

  private func remedy(for reason: String, in context: String) -> String {
    if reason.contains("utf-8") { return "save the file as UTF-8" }
    if reason.contains("end-of-file"), context == "array" { return "add ] at the end" }
    if reason.contains("end-of-file"), context == "inline table" { return "add } at the end" }
    if reason.contains("control characters") { return "remove the control character" }
    if reason.contains("escape") { return "write \\\\ for a backslash" }
    if context == "key-value pair", reason.contains("comment or whitespace") { return "write one KEY = VALUE on each line" }
    if context == "key-value pair", !reason.contains("value") { return "write KEY = VALUE" }
    if context == "boolean" { return "write true or false" }
    if reason.contains("value") { return "put strings in quotes, as in \(examples.string)" }
    if reason.contains("dots") { return "use fewer dots" }
    if ["integer", "floating-point", "date", "time"].contains(where: context.contains) {
      return "write a number, or put a string in quotes"
    }
    return "write \(examples.section), then lines of KEY = VALUE"
  }
}
