// The file with the sessions of a service, so that a restart signs out no browser. It contains no secret, only hashes, and no rights:
// restored sessions only observe. It is in a directory that is empty after a boot, because expiries are on the boot clock.

import Glibc
import Logging
import Protocols
import ServiceRuntime

/// A session as it is stored.
struct SessionRecord: Equatable {
  let secret: SecretHash
  /// The token with which the browser has signed in.
  let token: SecretHash
  /// On the boot clock.
  let expiry: Instant
}

struct SessionFile {
  private static let version = 2
  /// The maximum length in bytes, of which 64 sessions use a quarter.
  private static let maxLength = 64 << 10

  let path: String
  private let logger = Logger(label: "vehicled-web")

  /// The file in a directory.
  init(in directory: String) { path = "\(directory)/sessions" }

  /// Reads the sessions; none if there is no file. A damaged file is moved away and logged.
  func load() -> [SessionRecord] {
    let bytes: [UInt8]
    do throws(FileError) { bytes = try Files.contents(of: path, limit: Self.maxLength) } catch {
      switch error.code {
      case ENOENT: break
      case EFBIG: setAside("it is longer than \(Self.maxLength) bytes")
      default: logger.warning("cannot read \(path): \(errnoMessage(error.code)); all browsers must sign in again")
      }
      return []
    }
    guard let records = Self.records(String(decoding: bytes, as: UTF8.self)) else {
      setAside("it is not a list of sessions")
      return []
    }
    return records
  }

  /// Replaces the file. After a failure, which is logged, there is none: the old one may contain a session that was signed out.
  func store(_ records: [SessionRecord]) {
    do throws(ValueError) { try Files.replace(path, with: Array(Self.text(records).utf8)) } catch {
      guard unlink(path) == 0 || errno == ENOENT else {
        let cause = errnoMessage(errno)
        return logger.warning(
          "\(error.description); cannot remove the old file: \(cause); sessions that have ended since are valid after the next restart")
      }
      logger.warning("\(error.description); browsers must sign in again after the next restart")
    }
  }

  private func setAside(_ cause: String) {
    let other = path + ".damaged"
    let isMoved = rename(path, other) == 0
    let outcome = isMoved ? "it is now \(other)" : "cannot move it away: \(errnoMessage(errno))"
    logger.warning("cannot read \(path): \(cause); \(outcome); all browsers must sign in again")
  }

  // MARK: Text

  static func text(_ records: [SessionRecord]) -> String {
    let sessions = records.map { record -> JSON in
      ["secret": .string(record.secret.text), "token": .string(record.token.text), "expiry": .int(Int(record.expiry))]
    }
    return JSON.object([.init(key: "version", value: .int(version)), .init(key: "sessions", value: .array(sessions))]).text + "\n"
  }

  /// Parses a file; nil if any part of it is damaged.
  static func records(_ text: String) -> [SessionRecord]? {
    guard let root = JSON(text), root["version"] == .int(version), case .array(let sessions)? = root["sessions"] else { return nil }
    var records: [SessionRecord] = []
    for session in sessions {
      guard let secret = session["secret"]?.string.flatMap(SecretHash.init(stored:)),
        let token = session["token"]?.string.flatMap(SecretHash.init(stored:)), case .int(let expiry)? = session["expiry"]
      else { return nil }
      records.append(SessionRecord(secret: secret, token: token, expiry: Instant(expiry)))
    }
    return records
  }
}
