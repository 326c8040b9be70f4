//! The wire: from an HTTP request to a call, and from an answer to an HTTP response, for EC2's and AWS's query
//! protocols and restJson1. Signatures are read for what they say and not verified.

pub(crate) mod query;
pub(crate) mod rest;
pub(crate) mod xml;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use serde_json::{Map, Value, json};

use super::call::{Answer, ApiError, Service};
use crate::api::Region;

/// What a request says before anyone is asked who sent it.
#[derive(Debug)]
pub(crate) struct Received {
    pub service: Service,
    pub operation: String,
    pub region: Option<Region>,
    /// Absent for an unsigned call.
    pub access_key_id: Option<String>,
    pub session_token: Option<String>,
    pub parameters: Value,
}

/// The credential scope of a Signature Version 4 authorization.
#[derive(Debug, PartialEq)]
struct CredentialScope<'a> {
    access_key_id: &'a str,
    region: &'a str,
    service: &'a str,
}

/// Reads a request. A refusal comes with the service whose protocol it is to be told in.
pub(crate) fn receive(request: &Request<Bytes>) -> Result<Received, (Service, ApiError)> {
    let headers = request.headers();
    let authorization = headers.get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let scope = authorization.map(credential_scope);
    let by_path = if request.uri().path() == "/" { None } else { Some(Service::Eks) };
    let form = if by_path.is_none() { query::form(request) } else { Vec::new() };
    let by_version =
        form.iter().find(|(name, _)| name == "Version").and_then(|(_, version)| match version.as_str() {
            "2016-11-15" => Some(Service::Ec2),
            "2010-05-08" => Some(Service::Iam),
            "2011-06-15" => Some(Service::Sts),
            _ => None,
        });
    let by_scope = match &scope {
        Some(Some(scope)) => service_of_scope(scope.service),
        _ => None,
    };
    let Some(service) = by_scope.or(by_path).or(by_version) else {
        let error =
            ApiError::new(404, "UnknownOperationException", "no simulated service takes this request");
        return Err((Service::Eks, error));
    };
    let refuse = |error| (service, error);
    let scope = match scope {
        None => None,
        Some(Some(scope)) => Some(scope),
        Some(None) => return Err(refuse(incomplete_signature(service))),
    };
    let region = match &scope {
        Some(scope) => match scope.region.parse() {
            Ok(region) => Some(region),
            Err(_) => return Err(refuse(incomplete_signature(service))),
        },
        None => None,
    };
    let (operation, parameters) = match service {
        Service::Eks => {
            let (operation, labels) = rest::route(request.method().as_str(), request.uri().path())
                .ok_or_else(|| {
                    refuse(ApiError::new(
                        404,
                        "UnknownOperationException",
                        "the method and path mean no operation",
                    ))
                })?;
            (operation.to_owned(), rest_parameters(request, labels).map_err(refuse)?)
        }
        Service::Kms => json_call(request).map_err(refuse)?,
        Service::Ec2 | Service::Iam | Service::Sts => query::parameters(service, form).ok_or_else(|| {
            refuse(ApiError::bad("MissingAction", "The request must contain the parameter Action"))
        })?,
    };
    let unsigned_allowed = service == Service::Sts && operation == "AssumeRoleWithWebIdentity";
    if scope.is_none() && !unsigned_allowed {
        return Err(refuse(unsigned(service)));
    }
    Ok(Received {
        service,
        operation,
        region,
        access_key_id: scope.map(|scope| scope.access_key_id.to_owned()),
        session_token: text_header(headers, "x-amz-security-token"),
        parameters,
    })
}

fn text_header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn service_of_scope(name: &str) -> Option<Service> {
    match name {
        "ec2" => Some(Service::Ec2),
        "iam" => Some(Service::Iam),
        "sts" => Some(Service::Sts),
        "eks" => Some(Service::Eks),
        "kms" => Some(Service::Kms),
        _ => None,
    }
}

/// `AWS4-HMAC-SHA256 Credential=KEY/DATE/REGION/SERVICE/aws4_request, SignedHeaders=…, Signature=…`
fn credential_scope(authorization: &str) -> Option<CredentialScope<'_>> {
    let fields = authorization.strip_prefix("AWS4-HMAC-SHA256")?;
    let field =
        |name: &str| fields.split(',').find_map(|field| field.trim().strip_prefix(name)?.strip_prefix('='));
    let signature = field("Signature")?;
    field("SignedHeaders").filter(|names| !names.is_empty())?;
    let mut parts = field("Credential")?.rsplitn(5, '/');
    let terminator = parts.next()?;
    let (service, region, date, access_key_id) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let well_formed = terminator == "aws4_request"
        && date.len() == 8
        && date.bytes().all(|byte| byte.is_ascii_digit())
        && !access_key_id.is_empty()
        && signature.len() == 64
        && signature.bytes().all(|byte| byte.is_ascii_hexdigit());
    well_formed.then_some(CredentialScope { access_key_id, region, service })
}

fn incomplete_signature(service: Service) -> ApiError {
    match service {
        Service::Ec2 => {
            ApiError::new(401, "AuthFailure", "AWS was not able to validate the provided access credentials")
        }
        Service::Iam | Service::Sts => ApiError::new(
            400,
            "IncompleteSignature",
            "The Authorization header is not a complete AWS Signature Version 4",
        ),
        Service::Eks | Service::Kms => ApiError::new(
            403,
            "IncompleteSignatureException",
            "The Authorization header is not a complete AWS Signature Version 4",
        ),
    }
}

fn unsigned(service: Service) -> ApiError {
    match service {
        Service::Ec2 => {
            ApiError::new(401, "AuthFailure", "AWS was not able to validate the provided access credentials")
        }
        Service::Iam | Service::Sts => {
            ApiError::new(403, "MissingAuthenticationToken", "Request is missing Authentication Token")
        }
        Service::Eks | Service::Kms => {
            ApiError::new(403, "MissingAuthenticationTokenException", "Missing Authentication Token")
        }
    }
}

/// JSON 1.1: the operation stands in a header, `TrentService.CreateKey`, and the parameters are the body.
fn json_call(request: &Request<Bytes>) -> Result<(String, Value), ApiError> {
    let target = text_header(request.headers(), "x-amz-target").unwrap_or_default();
    let operation = target.strip_prefix("TrentService.").unwrap_or_default().to_owned();
    match serde_json::from_slice(request.body()) {
        Ok(parameters @ Value::Object(_)) => Ok((operation, parameters)),
        _ => Err(ApiError::bad("SerializationException", "the body is not a JSON object")),
    }
}

/// The body's members, those of the path, and those of the query.
fn rest_parameters(request: &Request<Bytes>, labels: Map<String, Value>) -> Result<Value, ApiError> {
    let body = request.body();
    let mut members = if body.is_empty() {
        Map::new()
    } else {
        match serde_json::from_slice(body) {
            Ok(Value::Object(members)) => members,
            _ => return Err(ApiError::bad("SerializationException", "the body is not a JSON object")),
        }
    };
    let pairs: Vec<(String, String)> =
        serde_urlencoded::from_str(request.uri().query().unwrap_or_default()).unwrap_or_default();
    for (name, value) in pairs {
        let value = Value::String(value);
        if !rest::QUERY_LISTS.contains(&name.as_str()) {
            members.insert(name, value);
        } else if let Value::Array(values) = members.entry(name).or_insert_with(|| json!([])) {
            values.push(value);
        }
    }
    members.extend(labels);
    Ok(Value::Object(members))
}

/// Writes an answer down in the service's protocol.
pub(crate) fn render(
    service: Service,
    operation: &str,
    request_id: &str,
    answer: &Answer,
) -> Response<Bytes> {
    let (status, body) = match (service, answer) {
        (Service::Eks | Service::Kms, Ok(value)) => (200, value.to_string()),
        (Service::Eks | Service::Kms, Err(error)) => {
            let mut members = error.fields.clone();
            if service == Service::Kms {
                members.insert("__type".into(), Value::String(error.code.clone()));
            }
            members.insert("message".into(), Value::String(error.message.clone()));
            (error.status, Value::Object(members).to_string())
        }
        (_, Ok(value)) => (200, xml::answer(service, operation, request_id, value)),
        (_, Err(error)) => (error.status, xml::error(service, request_id, error)),
    };
    let content = match service {
        Service::Eks => "application/json",
        Service::Kms => "application/x-amz-json-1.1",
        Service::Ec2 | Service::Iam | Service::Sts => "text/xml;charset=UTF-8",
    };
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() =
        http::StatusCode::from_u16(status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(content));
    if let Ok(id) = http::HeaderValue::from_str(request_id) {
        headers.insert("x-amzn-requestid", id);
    }
    if let (Service::Eks, Err(error)) = (service, answer)
        && let Ok(code) = http::HeaderValue::from_str(&error.code)
    {
        headers.insert("x-amzn-errortype", code);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNATURE: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn the_scope_names_key_region_and_service() {
        let header = format!(
            "AWS4-HMAC-SHA256 Credential=AKID/20261130/eu-central-1/ec2/aws4_request, SignedHeaders=host, Signature={SIGNATURE}"
        );
        let expected = CredentialScope { access_key_id: "AKID", region: "eu-central-1", service: "ec2" };
        assert_eq!(credential_scope(&header), Some(expected));
    }

    #[test]
    fn a_malformed_authorization_is_refused() {
        for header in [
            "Bearer x".to_owned(),
            format!("AWS4-HMAC-SHA256 Credential=AKID/2026/eu-central-1/ec2/aws4_request, SignedHeaders=host, Signature={SIGNATURE}"),
            "AWS4-HMAC-SHA256 Credential=AKID/20261130/eu-central-1/ec2/aws4_request, SignedHeaders=host, Signature=abc".to_owned(),
        ] {
            let request = Request::builder()
                .uri("/")
                .header("authorization", &header)
                .body(Bytes::from_static(b"Action=DescribeVpcs&Version=2016-11-15"))
                .unwrap();
            let (service, error) = receive(&request).unwrap_err();
            assert_eq!((service, error.code.as_str()), (Service::Ec2, "AuthFailure"), "{header}");
        }
    }
}
