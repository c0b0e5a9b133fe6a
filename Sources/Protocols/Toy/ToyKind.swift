// The configuration of the `toy` kind. It has no permanent link: it uses the toy's web server over HTTP, and listens on a port only
// during Wi-Fi setup.
// Source: neils95/Trivio: microprocessor.ino (port, network), Server/Trivio (server), SoftwareREADME.md (documented).

extension Kind {
  /// Trivia toys.
  public static let toy = Kind(
    name: "toy",
    summary: "The Trivio trivia toy: account, played facts, votes, and Wi-Fi setup",
    links: [],
    options: [
      Option(
        "server", ValueRule(.string), default: .string("https://triviotoy.azurewebsites.net"),
        help: "The toy's web server: the original one, or a replacement such as vehiclesim trivia"),
      Option(
        "insecure-http", ValueRule(.bool), default: .bool(false), help: "Allow a server with an http:// URL, without encryption"),
      Option(
        "dialect", ValueRule(.string, choices: ["original", "documented"]), default: .string("original"),
        help: "URL paths and HTTP methods: those of the real server (original), or of its documentation (documented)"),
      Option(
        "proxy", ValueRule(.string), help: "Proxy URL, as in http://192.168.0.1:3128; default: from the environment; \"\": no proxy"),
      Option(
        "listen", ValueRule(.string), default: .string("0.0.0.0:8080"),
        help: "Address to listen on during the Wi-Fi setup; the toy always connects to port 8080"),
      Option(
        "toy-network", ValueRule(.string), default: .string("192.168.4.0/24"),
        help: "Network of the toy's access point; connections from other networks are rejected"),
    ],
    warning: { setup in
      guard case .string(let server)? = setup.options["server"], server.contains("azurewebsites.net") else { return nil }
      return "the toy's original server stores passwords in plain text, and anyone who knows a user's ID can read that user's data and "
        + "vote as that user: use a password that you use nowhere else"
    }
  ) { setup throws(OptionError) in ToyMachine(try ToySettings(setup)) }
}

/// The configuration of a toy.
struct ToySettings: Sendable {
  enum Dialect: Sendable { case original, documented }

  /// The device's name.
  let device: String
  let server: String
  let dialect: Dialect
  let proxy: String?
  let listenAddress: String
  let network: IPv4Network

  init(_ setup: Setup) throws(OptionError) {
    device = setup.device
    server = try setup.httpServer("server")
    if server.hasPrefix("http://"), setup.options["insecure-http"] != .bool(true) {
      throw OptionError("server", "http:// sends passwords unencrypted; write https://, or add insecure-http = true")
    }
    dialect = setup.options["dialect"] == .string("documented") ? .documented : .original
    proxy = try setup.httpProxy()
    guard case .string(let address)? = setup.options["listen"], Self.isAddress(address) else {
      throw OptionError("listen", "not a local address with a port; write one, as in 0.0.0.0:8080")
    }
    listenAddress = address
    guard case .string(let network)? = setup.options["toy-network"] else { throw OptionError("toy-network", "is missing") }
    do { self.network = try IPv4Network(network) } catch { throw OptionError("toy-network", error.description) }
  }

  /// The server's name, for messages.
  var host: String { String(server.split(separator: "/", maxSplits: 2).last ?? "the server") }

  private static func isAddress(_ text: String) -> Bool {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, let port = UInt16(parts[1]), port > 0, !parts[0].contains("/") else { return false }
    return (try? IPv4Network(String(parts[0]))) != nil
  }
}
