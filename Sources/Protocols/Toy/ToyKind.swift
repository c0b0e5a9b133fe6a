// The `toy` kind as the configuration knows it, and its keys once they are checked. It has no link of its own: it asks the toy's
// web server over HTTP, and for once in a toy's life it waits for the toy on a port.
// Facts: protocols of the Trivia toy, §A (port, network), §B (server), §D (what the documentation says instead), §E.

extension Kind {
  /// Trivia toys.
  public static let toy = Kind(
    name: "toy",
    summary: "The Trivia toy: account, facts it has played, votes, and its Wi-Fi",
    links: [],
    options: [
      Option(
        "server", ValueRule(.string), default: .string("https://triviotoy.azurewebsites.net"),
        help: "The toy's web server; the original one, or a stand-in as vehiclesim trivia"),
      Option(
        "insecure-http", ValueRule(.bool), default: .bool(false), help: "Allow a server of http://, where everybody on the way can read"),
      Option(
        "dialect", ValueRule(.string, choices: ["original", "documented"]), default: .string("original"),
        help: "Addresses and verbs as the server's program has them, or as its documentation does"),
      Option(
        "proxy", ValueRule(.string), help: "The way there, as in http://192.168.0.1:3128; usually what the environment says; \"\": none"),
      Option(
        "listen", ValueRule(.string), default: .string("0.0.0.0:8080"),
        help: "Where the toy finds this machine while its Wi-Fi is set; the port is fixed in the toy"),
      Option(
        "toy-network", ValueRule(.string), default: .string("192.168.4.0/24"),
        help: "The network of the toy's access point: nobody from elsewhere is let in"),
    ],
    caution: { setup in
      guard case .string(let server)? = setup.options["server"], server.contains("azurewebsites.net") else { return nil }
      return "the toy's original server keeps passwords in plain text, and whoever knows a user's number can read and vote for them: take "
        + "a password that you use nowhere else"
    }
  ) { setup throws(OptionError) in ToyMachine(try ToySettings(setup)) }
}

/// The checked keys of one toy.
struct ToySettings: Sendable {
  enum Dialect: Sendable { case original, documented }

  /// The device's own name.
  let device: String
  let server: String
  let dialect: Dialect
  let proxy: String?
  let place: String
  let network: IPv4Network

  init(_ setup: Setup) throws(OptionError) {
    device = setup.device
    server = try setup.httpServer("server")
    if server.hasPrefix("http://"), setup.options["insecure-http"] != .bool(true) {
      throw OptionError("server", "over http:// passwords can be read on the way; write https://, or add insecure-http = true")
    }
    dialect = setup.options["dialect"] == .string("documented") ? .documented : .original
    proxy = try setup.httpProxy()
    guard case .string(let place)? = setup.options["listen"], Self.isPlace(place) else {
      throw OptionError("listen", "this is no address of ours with a port; write one, as in 0.0.0.0:8080")
    }
    self.place = place
    guard case .string(let network)? = setup.options["toy-network"] else { throw OptionError("toy-network", "is missing") }
    do { self.network = try IPv4Network(network) } catch { throw OptionError("toy-network", error.description) }
  }

  /// The server's name, for words.
  var host: String { String(server.split(separator: "/", maxSplits: 2).last ?? "the server") }

  private static func isPlace(_ text: String) -> Bool {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, let port = UInt16(parts[1]), port > 0, !parts[0].contains("/") else { return false }
    return (try? IPv4Network(String(parts[0]))) != nil
  }
}
