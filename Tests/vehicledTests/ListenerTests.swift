import CLinux
import Glibc
import NIOCore
import Protocols
import ServiceRuntime
import Testing

@testable import vehicled

@Suite struct ListenerTests {
  /// A socket that listens on this path (`backlog` ≥ 0) or is connected to it (nil). -1 on failure.
  @Loop private func socket(at path: String, backlog: CInt?) -> CInt {
    let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let done = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        guard let backlog else { return connect(descriptor, $0, size) }
        return bind(descriptor, $0, size) == 0 ? listen(descriptor, backlog) : -1
      }
    }
    if done == 0 { return descriptor }
    close(descriptor)
    return -1
  }

  @Loop private func listener(
    at path: String, control: Configuration.Control = Configuration.Control(lists: .init(observe: [], control: [])),
    user: @escaping @Loop () -> UInt32 = { geteuid() }
  ) async throws -> Listener {
    // Long, so that no client is closed as idle on a slow machine.
    let methods = Methods(
      hub: DeviceHub(), access: Access(control), blueZ: BlueZ(SystemBus()), directory: "/tmp",
      admission: Admission(maxIdleTime: .max / 2))
    // As the daemon does when it starts.
    await withCheckedContinuation { continuation in methods.nameService.find(methods.access.queries) { _ in continuation.resume() } }
    return try await Listener.start(path: path, methods) { _ in Peer(pid: 1, user: user(), groups: []) }
  }

  @Test("A stopped daemon with a full queue still owns the socket: a second start fails and does not hang")
  func stoppedHolder() async {
    await Task { @Loop in
      let path = "\(temporaryDirectory())/socket"
      let holder = socket(at: path, backlog: 0)
      var waiting: [CInt] = []
      while case let next = socket(at: path, backlog: nil), next >= 0 { waiting.append(next) }
      #expect(!waiting.isEmpty)
      let error = await #expect(throws: ValueError.self) { _ = try await listener(at: path) }
      #expect(error?.description.contains("another vehicled") == true)
      (waiting + [holder]).forEach { close($0) }
    }.value
  }

  @Test("A stopping daemon removes only its own socket")
  func removesItsOwn() async throws {
    try await Task { @Loop in
      let path = "\(temporaryDirectory())/socket"
      let first = try await listener(at: path)
      var status = stat()
      // Every user may connect: each call is checked.
      #expect(lstat(path, &status) == 0 && status.st_mode & 0o777 == 0o666)
      await first.close()
      #expect(access(path, F_OK) != 0)
      let stopping = try await listener(at: path)
      unlink(path)
      let replacement = socket(at: path, backlog: 1)
      await stopping.close()
      #expect(access(path, F_OK) == 0)
      close(replacement)
    }.value
  }

  @Test("256 clients are served, and further ones are rejected until one disconnects")
  func manyClients() async throws {
    try await Task { @Loop in
      let path = "\(temporaryDirectory())/socket"
      let listener = try await listener(at: path)
      var clients: [CInt] = []
      /// Whether the daemon has closed its end.
      func isClosed(_ client: CInt) -> Bool {
        var byte: UInt8 = 0
        return read(client, &byte, 1) == 0
      }
      for count in 1...260 {
        // The queue of pending connections is shorter than this.
        #expect(
          await until {
            let client = socket(at: path, backlog: nil)
            if client >= 0 { clients.append(client) }
            return clients.count == count
          })
      }
      #expect(await until { clients[256...].allSatisfy(isClosed) })
      #expect(!clients[..<256].contains(where: isClosed))
      close(clients.removeFirst())
      // The disconnect is noticed in a later turn, and clients that connect before are rejected. Only a reply distinguishes a
      // client that is served from one that is not closed yet.
      let call = Array("{\"method\":\"org.varlink.service.GetInfo\"}\0".utf8)
      var isServed = false
      #expect(
        await until {
          if isServed { return true }
          if let last = clients.last, last >= 0 {
            var byte: UInt8 = 0
            let count = recv(last, &byte, 1, CInt(MSG_DONTWAIT))
            if count == 1 { isServed = true }
            if count > 0 || count < 0 && errno == EAGAIN { return isServed }
          }
          clients.append(socket(at: path, backlog: nil))
          if let last = clients.last { _ = send(last, call, call.count, CInt(MSG_NOSIGNAL)) }
          return false
        })
      clients.forEach { close($0) }
      await listener.close()
    }.value
  }

  /// The user of the next client.
  @Loop private final class Caller {
    var user: UInt32 = 4711
  }

  @Test("The connections of a user are limited, more so without a right, and the owner always gets one", arguments: [true, false])
  func shares(known: Bool) async throws {
    try await Task { @Loop in
      let path = "\(temporaryDirectory())/socket"
      let caller = Caller()
      let control = Configuration.Control(lists: .init(observe: [], control: [], observeUsers: known ? ["4711", "4712"] : []))
      let listener = try await listener(at: path, control: control) { caller.user }
      func connect(_ count: Int) async -> [CInt] {
        var clients: [CInt] = []
        for wanted in 1...count {
          _ = await until {
            let client = socket(at: path, backlog: nil)
            if client >= 0 { clients.append(client) }
            return clients.count == wanted
          }
          // The user is read when the client is accepted.
          _ = await until { write(clients[wanted - 1], "", 0) == 0 || errno == EPIPE }
        }
        return clients
      }
      func served(_ clients: [CInt]) async -> Int {
        let call = Array("{\"method\":\"org.varlink.service.GetInfo\"}\0".utf8)
        for client in clients { _ = send(client, call, call.count, CInt(MSG_NOSIGNAL)) }
        var answers = [Bool?](repeating: nil, count: clients.count)
        _ = await until {
          for (index, client) in clients.enumerated() where answers[index] == nil {
            var byte: UInt8 = 0
            let count = recv(client, &byte, 1, CInt(MSG_DONTWAIT))
            if count == 1 { answers[index] = true } else if count == 0 || errno == ECONNRESET || errno == EPIPE { answers[index] = false }
          }
          return answers.allSatisfy { $0 != nil }
        }
        return answers.count { $0 == true }
      }
      let many = await connect(140)
      let first = await served(many)
      #expect(known ? first == 120 : (16...48).contains(first), "\(first)")
      caller.user = 4712
      let more = await connect(130)
      let second = await served(more)
      #expect(known ? second == 60 : (12...48).contains(second), "\(second)")
      caller.user = geteuid()
      let owner = await connect(1)
      #expect(await served(owner) == 1)
      (many + more + owner).forEach { close($0) }
      await listener.close()
    }.value
  }
}
