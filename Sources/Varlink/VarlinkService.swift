// The interface org.varlink.service, which every Varlink server implements: information about the server and its interfaces.
// Source: the Varlink service page (varlink.org); PermissionDenied has an additional parameter on the wire.

import Protocols

/// The standard interface.
public enum VarlinkService {
  public static let interface = "org.varlink.service"

  /// Every method; each one must have a handler.
  public static let methods: [any VarlinkMethod.Type] = [GetInfo.self, GetInterfaceDescription.self]

  public enum GetInfo: VarlinkMethod {
    public static let name = "org.varlink.service.GetInfo"
    public typealias Parameters = NoParameters

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case vendor, product, version, url, interfaces }
      public var vendor: String
      public var product: String
      public var version: String
      public var url: String
      public var interfaces: [String]

      public init(vendor: String, product: String, version: String, url: String, interfaces: [String]) {
        self.vendor = vendor
        self.product = product
        self.version = version
        self.url = url
        self.interfaces = interfaces
      }
    }
  }

  public enum GetInterfaceDescription: VarlinkMethod {
    public static let name = "org.varlink.service.GetInterfaceDescription"

    public struct Parameters: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case interface }
      public var interface: String

      /// Selects an interface.
      public init(interface: String) { self.interface = interface }
    }

    public struct Result: VarlinkParameters, Equatable {
      public enum CodingKeys: CodingKey, CaseIterable { case description }
      public var description: String

      public init(description: String) { self.description = description }
    }
  }

  /// The text of this interface.
  public static let text = """
    # Information about a Varlink server and its interfaces; every server implements this interface.
    interface org.varlink.service

    # Returns the server's version and the names of its interfaces.
    method GetInfo() -> (vendor: string, product: string, version: string, url: string, interfaces: []string)

    # Returns the text of one interface.
    method GetInterfaceDescription(interface: string) -> (description: string)

    error InterfaceNotFound(interface: string)
    error MethodNotFound(method: string)
    error MethodNotImplemented(method: string)
    error InvalidParameter(parameter: string)
    error PermissionDenied()
    error ExpectedMore()

    """
}
