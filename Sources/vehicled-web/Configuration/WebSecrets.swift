// The tokens that the configuration names, read from their files.

import Protocols
import ServiceRuntime

struct WebSecrets {
  let tokens: [Sessions.NamedToken]
  /// Of Prometheus; nil if there is no `/metrics`.
  let metrics: Token?

  /// Throws if a file is missing, accessible to other users, or too short.
  init(_ configuration: WebConfiguration) throws(ValueError) {
    tokens = try configuration.tokens.map { token throws(ValueError) in
      Sessions.NamedToken(name: token.name, token: try Self.secret(token.file, of: "token \(token.name)"), rights: token.rights)
    }
    metrics = try configuration.metrics.map { metrics throws(ValueError) in try Self.secret(metrics.tokenFile, of: "metrics") }
  }

  /// Reads a token, which must be long enough that it cannot be guessed.
  private static func secret(_ file: String, of owner: String) throws(ValueError) -> Token {
    let secret: SecretBytes
    do throws(ValueError) { secret = try SecretFile.read(file) } catch { throw ValueError("\(owner): \(error.description)") }
    guard secret.bytes.count >= Token.minLength else {
      throw ValueError(
        "\(owner): the token in \(quoted(file)) is shorter than \(Token.minLength) characters; create one with: openssl rand -hex 16")
    }
    return Token(secret)
  }
}
