// Rights on one device: what a client with such rights gets from each method, and after a change of the rules.

import Protocols
import ServiceRuntime
import Testing
import Varlink

@testable import vehicled

@Suite("Device rights") @Loop struct DeviceRightsTests {
  private static let (observer, controller, driver): (UInt32, UInt32, UInt32) = (5001, 5002, 5003)
  private static let lists = Configuration.AccessLists(
    observeUsers: ["5001"], controlUsers: ["5002"], driveUsers: ["5003"], limitsDriving: true)

  /// Two devices, `board` and `other`, of which the other has a value.
  @Loop private final class Rig {
    let driving: DrivingRig
    let other: Device
    var methods: Methods { driving.methods }

    init() async {
      let hidden = Configuration.AccessLists(observe: ["root"], controlUsers: ["5009"])
      driving = await DrivingRig(
        control: Configuration.Control(lists: .init(), devices: ["board": DeviceRightsTests.lists, "other": hidden]))
      let probe = Probe()
      probe.onInput { input, _, effects in
        if case .started = input { effects.publish(0, .string("hidden")) }
      }
      let properties = [
        Property("secret", .string, lifetime: .retained, help: "Secret"), Property("led", .int, access: .write, help: "Light"),
      ]
      other = device(probe, named: "other", Schema(properties: properties))
      driving.hub.add(other)
      other.open(restored: [:])
    }

    func client(_ user: UInt32) throws -> SocketClient { try SocketClient(methods, user: user) }

    /// The first reply to a call on a connection of its own.
    func ask(_ user: UInt32, _ call: String) async throws -> String {
      let client = try client(user)
      defer { client.disconnect() }
      return await client.ask(call)
    }

    func allow(_ devices: [String: Configuration.AccessLists], everywhere: Configuration.AccessLists = .init()) {
      methods.access = Access(Configuration.Control(lists: everywhere, devices: devices))
    }

    func end() { driving.end() }
  }

  private static func call(_ method: String, _ parameters: String = "{}", more: Bool = false) -> String {
    #"{"method":"\#(method)","parameters":\#(parameters)\#(more ? ",\"more\":true" : "")}"#
  }

  /// A call of each method about a device, and the right that it requires.
  private static func calls(about device: String) -> [(method: String, right: Right, call: String)] {
    let object = #"{"device":"\#(device)"}"#, references = #"{"references":["\#(device).led"]}"#
    let all: [(String, Right, String, Bool)] = [
      (Contract.Status.name, .observe, object, false), (Contract.Describe.name, .observe, object, false),
      (Contract.Get.name, .observe, references, false), (Contract.Watch.name, .observe, references, true),
      (Contract.Record.name, .observe, object, true), (Contract.Log.name, .observe, object, false),
      (Contract.Set.name, .control, #"{"device":"\#(device)","property":"led","value":{"int":1}}"#, false),
      (Contract.Call.name, .control, #"{"device":"\#(device)","action":"jump"}"#, false),
      (Contract.Connect.name, .control, object, false), (Contract.Drive.name, .drive, object, true),
      (Contract.Disconnect.name, .control, object, false),
    ]
    return all.map { ($0.0, $0.1, call($0.0, $0.2, more: $0.3)) }
  }

  private static let daemonCalls = [
    Contract.Scan.name, Contract.Diagnose.name, Contract.Statistics.name, Contract.Reload.name, Contract.LogLevel.name,
  ]

  @Test func `every method checks the right on the device`() async throws {
    let methods = Self.calls(about: "").map(\.method) + Self.daemonCalls
    #expect(Set(methods) == Set(Methods.handlers.filter { $0.value.right != nil }.keys), "each method is tested")
    let rig = await Rig()
    for (user, level) in [(Self.observer, Right.observe), (Self.controller, .control), (Self.driver, .drive)] {
      for (method, right, call) in Self.calls(about: "board") {
        let reply = try await rig.ask(user, call)
        #expect(!reply.isEmpty && reply.contains("PermissionDenied") == (right > level), "\(user) \(method): \(reply)")
      }
      for device in ["other", "unknown"] {
        for (method, right, call) in Self.calls(about: device) {
          let reply = try await rig.ask(user, call)
          #expect(reply.contains("PermissionDenied") && reply.contains("lacks the \(right) right for \(device)"), "\(method): \(reply)")
          #expect(!reply.contains("hidden") && !reply.contains("led"), "\(reply)")
        }
      }
      // An unknown device cannot be told apart from one that the client may not see, neither by this client nor by one without any right.
      for client in [user, 4711] {
        for (hidden, unknown) in zip(Self.calls(about: "other"), Self.calls(about: "unknown")) {
          let replies = [JSON(try await rig.ask(client, hidden.call)), JSON(try await rig.ask(client, unknown.call))]
          let messages = replies.map { $0?["parameters"]?["missing"]?.string?.replacing("other", with: "unknown") }
          #expect(messages[0] != nil && messages[0] == messages[1], "\(messages)")
        }
      }
      for method in Self.daemonCalls {
        #expect(try await rig.ask(user, Self.call(method, more: method == Contract.Scan.name)).contains("PermissionDenied"), "\(method)")
      }
      rig.driving.device.connect { _ in }
      #expect(await until { rig.driving.device.ports.allSatisfy(\.isUp) })
    }
    rig.end()
  }

  @Test func `calls about all devices show those that the client may see`() async throws {
    let rig = await Rig()
    for (method, more) in [(Contract.Status.name, false), (Contract.Describe.name, false), (Contract.Watch.name, true)] {
      let reply = try await rig.ask(Self.observer, Self.call(method, more: more))
      #expect(reply.contains("\"board\"") && !reply.contains("other") && !reply.contains("hidden"), "\(method): \(reply)")
      let root = try await rig.ask(0, Self.call(method, more: more))
      #expect(root.contains("\"board\"") && root.contains("\"other\""), "\(root)")
    }
    // A property is looked up on these devices only.
    let get = Self.call(Contract.Get.name, #"{"references":["led"]}"#), hidden = Self.call(Contract.Get.name, #"{"references":["secret"]}"#)
    #expect(try await rig.ask(0, get).contains("Ambiguous"))
    #expect(try await rig.ask(Self.observer, get).contains("\"device\":\"board\""))
    #expect(try await rig.ask(0, hidden).contains("hidden"))
    #expect(try await rig.ask(Self.observer, hidden).contains("NoSuchProperty"))
    for call in [Self.call(Contract.Status.name), get] { #expect(try await rig.ask(4711, call).contains("PermissionDenied")) }
    rig.end()
  }

  /// The error that ends a stream.
  private func end(of stream: SocketClient) async -> String {
    var reply = ""
    repeat { reply = await stream.next() } while !reply.isEmpty && !reply.contains("\"error\"")
    return reply
  }

  @Test func `streams about a device end when the right on it is lost`() async throws {
    let rig = await Rig()
    let calls = [
      Self.call(Contract.Watch.name, more: true), Self.call(Contract.Watch.name, #"{"references":["board.led"]}"#, more: true),
      Self.call(Contract.Record.name, #"{"device":"board"}"#, more: true), Self.call(Contract.Log.name, more: true),
      Self.call(Contract.Log.name, #"{"device":"board"}"#, more: true),
    ]
    var streams: [SocketClient] = []
    for call in calls {
      let stream = try rig.client(Self.observer)
      #expect(await !stream.ask(call).contains("error"))
      streams.append(stream)
    }
    let holder = try rig.client(Self.driver)
    _ = await rig.driving.drive(holder)
    #expect(rig.driving.leases == ["lease"])
    // Others' rights do not concern them.
    rig.allow(["board": Self.lists, "other": .init(observeUsers: ["5002"])])
    await Timer.pause(50 * .millisecond)
    #expect(rig.driving.leases == ["lease"])
    rig.allow(["board": .init(controlUsers: ["5003"], limitsDriving: true), "other": .init(observeUsers: ["5001"])])
    for stream in streams {
      let end = await end(of: stream)
      #expect(end.contains("PermissionDenied") && end.contains("lacks the observe right for board"), "\(end)")
    }
    let lost = await end(of: holder)
    #expect(lost.contains("PermissionDenied") && lost.contains("lacks the drive right for board"), "\(lost)")
    #expect(rig.driving.leases.count == 2)
    (streams + [holder]).forEach { $0.disconnect() }
    rig.end()
  }

  @Test func `a watch of all devices follows added rights and devices`() async throws {
    let rig = await Rig()
    let watcher = try rig.client(Self.observer)
    #expect(await !watcher.ask(Self.call(Contract.Watch.name, more: true)).contains("other"))
    // A device without lists for this client, and changes of a device that it may not see, are not reported.
    let third = device(Probe(), named: "third", DrivingRig.schema)
    rig.driving.hub.add(third)
    third.open(restored: [:])
    rig.allow(["board": Self.lists, "other": .init(observeUsers: ["5001"])])
    let more = await watcher.next()
    #expect(more.contains("snapshot") && more.contains("\"other\"") && more.contains("hidden") && !more.contains("third"), "\(more)")
    rig.allow([:], everywhere: .init(observeUsers: ["5001"]))
    let all = await watcher.next()
    #expect(all.contains("snapshot") && all.contains("\"third\""), "\(all)")
    // A removed device is reported as such; its lists are gone with it.
    rig.allow(["board": Self.lists, "other": .init(observeUsers: ["5001"]), "third": .init(observeUsers: ["5001"])])
    #expect(await watcher.next().contains("snapshot"))
    rig.driving.hub.remove(third)
    #expect(await watcher.next().contains("removed"))
    rig.allow(["board": Self.lists, "other": .init(observeUsers: ["5001"])])
    #expect(await watcher.next().contains("snapshot"))
    rig.allow(["board": Self.lists])
    let end = await watcher.next()
    #expect(end.contains("PermissionDenied") && !end.contains("hidden"), "\(end)")
    watcher.disconnect()
    rig.end()
  }
}
