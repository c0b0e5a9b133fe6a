// A device that requires a property before use: prompts, and what is done with the input.

import Protocols
import Synchronization
import Testing
import Varlink

@testable import vehiclectl

@Suite struct RequiredPropertyPromptTests {
  /// A daemon whose mirror requires a username; records its calls.
  private final class Daemon: Sendable {
    private let calls = Mutex<[String]>([])
    private let name = Mutex<String?>(nil)
    var calledMethods: [String] { calls.withLock { $0 } }

    func answer(_ method: String, _ parameters: JSON) -> Answer {
      calls.withLock { $0.append(String(method.split(separator: ".").last ?? "")) }
      let username = Property("username", .string, access: .write, lifetime: .retained, help: "The name that the mirror shows")
      switch method {
      case Contract.Status.name:
        let state = name.withLock { $0 } == nil ? "needs-username" : "ready"
        return .send(VarlinkReply.message(Contract.Status.Result(devices: [.init(name: "mirror", kind: "mirror", state: state)])))
      case Contract.Describe.name:
        let schema = Contract.Schema(device: "mirror", kind: "mirror", Schema(properties: [username]))
        return .send(VarlinkReply.message(Contract.Describe.Result(schemas: [schema])))
      case Contract.Set.name where parameters["value"]?["string"]?.string == "a/b":
        return .send(VarlinkReply.message(.outOfRange(property: "username", message: "a name has letters")))
      case Contract.Set.name:
        name.withLock { $0 = parameters["value"]?["string"]?.string ?? "?" }
        let reading = Contract.Reading(
          device: "mirror", property: "username", value: .string("Ada"), time: 1, age: 0, reason: "it takes pictures")
        return .send(VarlinkReply.message(Contract.Set.Result(reading: reading)))
      default:
        guard name.withLock({ $0 }) != nil else {
          return .send(VarlinkReply.message(.deviceError(device: "mirror", code: "needs-username", message: "it has no name to show")))
        }
        return .send(VarlinkReply.message(Contract.Call.Result(Report(text: "sent"))))
      }
    }
  }

  private func use(
    _ daemon: Daemon, json: Bool = false, typed: String?..., body: (RequiredPropertyPrompt, Client) throws -> String?
  ) throws -> (result: String?, prompts: [String]) {
    let server = try SocketServer { daemon.answer($0, $1) }
    defer { server.stop() }
    let client = try Client(path: server.path, timeout: 5)
    var prompts: [String] = []
    var prompt = RequiredPropertyPrompt(device: "mirror", client: client, output: Output(json: json))
    prompt.promptForLine = {
      prompts.append($0)
      return prompts.count <= typed.count ? typed[prompts.count - 1] : nil
    }
    return (try body(prompt, client), prompts)
  }

  private func send(_ prompt: RequiredPropertyPrompt, _ client: Client) throws -> String? {
    try prompt.run { try client.call(Contract.Call.self, .init(device: "mirror", action: "send-now")).text }
  }

  @Test func `a required property is prompted for once, set, and the call is repeated`() throws {
    let daemon = Daemon()
    let (result, prompts) = try use(daemon, typed: "Ada", body: send)
    #expect(result == "sent" && prompts == ["mirror requires username: The name that the mirror shows\nusername: "])
    #expect(daemon.calledMethods == ["Call", "Describe", "Set", "Call"])
    let (again, none) = try use(daemon, typed: "Ada", body: send)
    #expect(again == "sent" && none.isEmpty)
  }

  @Test func `an invalid value is explained and prompted for again`() throws {
    let daemon = Daemon()
    let (result, prompts) = try use(daemon, typed: "a/b", "Ada", body: send)
    #expect(result == "sent" && prompts.last == "username: a name has letters\nusername: ")
    #expect(throws: Failure.self) { try use(Daemon(), typed: "a/b", "", body: send) }
  }

  @Test(arguments: [nil, ""] as [String?]) func `without an answer the device's error is reported`(typed: String?) throws {
    let daemon = Daemon()
    let refused = Failure.rejected(.deviceError(device: "mirror", code: "needs-username", message: "it has no name to show"))
    #expect(throws: refused) { try use(daemon, typed: typed, body: send) }
    #expect(!daemon.calledMethods.contains("Set"))
  }

  @Test func `programs are not prompted`() throws {
    let daemon = Daemon()
    #expect(throws: Failure.self) { try use(daemon, json: true, typed: "Ada", body: send) }
    #expect(daemon.calledMethods == ["Call"])
  }

  @Test func `connect prompts as well`() throws {
    let daemon = Daemon()
    let (_, prompts) = try use(
      daemon, typed: "Ada",
      body: { prompt, _ in
        try prompt.run()
        return nil
      })
    #expect(prompts.count == 1 && daemon.calledMethods == ["Status", "Describe", "Set"])
  }
}
